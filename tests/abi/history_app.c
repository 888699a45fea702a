/* Today's host: loads one plugin file into libtenon.so, pins its kernel for `neg` and runs it.
 *
 *     history_app PLUGIN      prints "ok A.B", or the verdict's text */
#include <stdio.h>
#include <string.h>
#include <tenon/ops.h>
#include <tenon/runtime.h>

#define TRY(call) do { if ((call) != TN_OK) { puts(d.msg); return 1; } } while (0)

int main(int argc, char** argv) {
  tn_diag d = {sizeof d};
  tn_runtime* rt;
  tn_queue* q;
  uint32_t plugin = TN_NONE, cpu, neg, type, n = 0;
  tn_type t = {TN_F32, 1, 0, 0, 6, 0, 0, {3}, {1}};
  const float x[3] = {1, -2, 3};
  float y[3];
  tn_tensor *in, *out = NULL;
  tn_plugin_entry entries[16];
  const char* nowhere[] = {"/nonexistent"};
  tn_runtime_options options = {sizeof options};
  options.paths = nowhere, options.n_paths = 1, options.threads = 1;
  if (argc != 2) return 2;
  memset(entries, 0, sizeof entries);
  TRY(tn_runtime_create(&options, &rt, &d));
  const tn_status loaded = tn_plugin_load(rt, argv[1], &plugin, &d);
  if (loaded != TN_OK) {
    puts(d.msg);
    return tn_runtime_destroy(rt, TN_FOREVER, &d) == TN_OK ? 0 : 1;
  }
  TRY(tn_plugins(rt, entries, sizeof entries[0], 16, &n, &d));
  TRY(tn_device_find(rt, "cpu:0", TN_POLICY_REQUIRE, &cpu, &d));
  TRY(tn_op_find(rt, "neg", 0, &neg, &d));
  TRY(tn_type_intern(rt, &t, &type, &d));
  TRY(tn_pin(rt, neg, cpu, "history.neg", &d));
  TRY(tn_queue_get(rt, cpu, &q, &d));
  TRY(tn_tensor_create(q, type, &in, &d));
  TRY(tn_tensor_write(q, in, x, sizeof x, &d));
  tn_call_args call = {neg, 0, 0, 0, 1, 1, &in, &out, NULL};
  TRY(tn_call(q, &call, &d));
  TRY(tn_tensor_read(q, out, y, sizeof y, &d));
  tn_tensor_release(in);
  tn_tensor_release(out);
  if (y[0] != -1 || y[1] != 2 || y[2] != -3) return puts("wrong result"), 1;
  TRY(tn_plugin_unload(rt, plugin, TN_FOREVER, &d));
  TRY(tn_runtime_destroy(rt, TN_FOREVER, &d));
  for (uint32_t i = 0; i < n && i < 16; ++i) {
    if (entries[i].index == plugin) printf("ok %u.%u\n", entries[i].abi >> 16, entries[i].abi & 0xFFFF);
  }
  return 0;
}
