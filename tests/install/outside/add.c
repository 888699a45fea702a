/* Adds two vectors on the best device and lists every plugin file that was looked at: "plugin CODE PATH". */
#include <stdio.h>
#include <tenon/ops.h>
#include <tenon/runtime.h>

#define TRY(call) \
  do { \
    if ((call) != TN_OK) { \
      fprintf(stderr, "%s\n", d.msg); \
      return 1; \
    } \
  } while (0)

static int list_plugins(tn_runtime* rt) {
  static tn_plugin_entry entry[32];
  tn_diag d = {sizeof d};
  uint32_t n = 0;
  TRY(tn_plugins(rt, entry, sizeof entry[0], 32, &n, &d));
  for (uint32_t i = 0; i < n && i < 32; ++i) printf("plugin %u %s\n", entry[i].code, entry[i].path);
  return 0;
}

static int add_vectors(tn_runtime* rt) {
  tn_diag d = {sizeof d};
  tn_queue* q;
  uint32_t device, add, type;
  float a[4] = {1, 2, 3, 4}, b[4] = {10, 20, 30, 40}, sum[4];
  tn_type t = {TN_F32, 1, 0, 0, 6, 0, 0, {4}, {1}};
  tn_tensor *in[2], *out = NULL;
  TRY(tn_device_find(rt, "auto", TN_POLICY_PREFER, &device, &d));
  TRY(tn_queue_get(rt, device, &q, &d));
  TRY(tn_op_find(rt, "add", 0, &add, &d));
  TRY(tn_type_intern(rt, &t, &type, &d));
  TRY(tn_tensor_create(q, type, &in[0], &d));
  TRY(tn_tensor_create(q, type, &in[1], &d));
  TRY(tn_tensor_write(q, in[0], a, sizeof a, &d));
  TRY(tn_tensor_write(q, in[1], b, sizeof b, &d));
  tn_call_args call = {add, 0, 0, 0, 2, 1, in, &out, NULL};
  TRY(tn_call(q, &call, &d));
  TRY(tn_tensor_read(q, out, sum, sizeof sum, &d));
  printf("sum %g %g %g %g\n", sum[0], sum[1], sum[2], sum[3]);
  tn_tensor_release(in[0]);
  tn_tensor_release(in[1]);
  tn_tensor_release(out);
  return 0;
}

int main(void) {
  tn_diag d = {sizeof d};
  tn_runtime* rt;
  TRY(tn_runtime_create(NULL, &rt, &d));
  if (list_plugins(rt) != 0 || add_vectors(rt) != 0) return 1;
  TRY(tn_runtime_destroy(rt, TN_FOREVER, &d));
  return 0;
}
