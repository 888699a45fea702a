/* ops/reference/plugin.h - the entry of the linked reference plugin "dev.tenon.cpu", which owns cpu:0.
 * Not exported: the library it is linked into hands it to the loader. Rules of tn_plugin_query_fn hold.               */
#ifndef TENON_REFERENCE_PLUGIN_H
#define TENON_REFERENCE_PLUGIN_H
#include <tenon/plugin.h>
#ifdef __cplusplus
extern "C" {
#endif
#define TN_REFERENCE_ID "dev.tenon.cpu"
const tn_plugin* tn_reference_query(uint32_t abi, const tn_host* host);
#ifdef __cplusplus
}
#endif
#endif
