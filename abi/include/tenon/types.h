/* tenon/types.h - words shared by plugin.h (what a vendor implements) and runtime.h (what an app calls).
 *
 * Holds: layout rules, status, diagnosis, tensor types, scalar programs, ops and their rules, the builder.
 * Layout: fixed-width integers, float, double, pointers, char arrays. No C enum type, bool, size_t, long, bit-field or
 *   varargs in a struct or signature; no implicit padding on LP64 (CI: -Wpadded -Werror).
 *   [extensible] starts with `size` (set by whoever fills it) and mostly `next`; read late fields through TN_HAS.
 *   [frozen] never changes within a major; arrays of frozen structs are plain, arrays of extensible ones have a stride.
 * Defaults, so that each function states only what differs: any thread; does not block; pointer arguments are borrowed
 *   for the call; `tn_diag*` is the caller's and may be NULL; strings are UTF-8, NUL-terminated; since 1.0.
 * Example:  tn_inst add[] = {{TN_OP_INPUT, TN_F32, 0,0,0}, {TN_OP_INPUT, TN_F32, 1,0,0}, {TN_OP_ADD, TN_F32, 0,1,0}};
 *           tn_program p = {sizeof p, 0, 0, 3, 2, 1, 0, {2, 0, 0, 0}, 0, add};                                     */
#ifndef TENON_TYPES_H
#define TENON_TYPES_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#define TN_ABI(major, minor) (((uint32_t)(major) << 16) | (uint32_t)(minor))
#define TN_ABI_CURRENT       TN_ABI(0, 1) /* becomes 1.0 at the freeze; "since 1.0" and "added after 1.0" mean the freeze */
/* True when the writer of *p knew `field`. Read no field added after 1.0 without it. */
#define TN_HAS(type, p, field) ((p)->size >= offsetof(type, field) + sizeof(((const type*)0)->field))
#if defined(_WIN32)
#define TN_EXPORT __declspec(dllexport)
#else
#define TN_EXPORT __attribute__((visibility("default")))
#endif
#define TN_NONE       0xFFFFFFFFu /* no value, no id, not from a slot */
#define TN_VARIADIC   0xFFFFu     /* operand count is open */
#define TN_MAX_RANK   8
#define TN_FOREVER    UINT64_MAX  /* timeout_ns: wait without end */

/* Extension chain. Id bit 31 = critical: a reader that does not know it must refuse with TN_E_EXT and name the id;
 * other unknown ids are skipped. At most 16 links, no id twice. */
typedef struct tn_ext { uint32_t size, id; const struct tn_ext* next; } tn_ext; /* [frozen] */
#define TN_EXT_CRITICAL 0x80000000u

/* ---- status and diagnosis ------------------------------------------------------------------------------------- */
typedef int32_t tn_status; /* 0 good; < 0 failure; an unknown code is a plain failure, never good */
#define TN_STATUSES(X) \
  X(TN_OK, 0, "good")                                   X(TN_E_ARG, -1, "an argument is not allowed") \
  X(TN_E_SHAPE, -2, "shapes do not fit")                X(TN_E_DTYPE, -3, "element types do not fit") \
  X(TN_E_STATE, -4, "not allowed in this state")        X(TN_E_OOM, -5, "out of memory") \
  X(TN_E_UNSUPPORTED, -6, "nobody offers this")         X(TN_E_UNAVAILABLE, -7, "a driver, library or device is absent") \
  X(TN_E_DEVICE_LOST, -8, "device lost (sticky)")       X(TN_E_FAILED, -9, "device work failed; this value is bad") \
  X(TN_E_DEPENDS, -10, "an input value had failed")     X(TN_E_TIMEOUT, -11, "not done in time") \
  X(TN_E_CANCELLED, -12, "cancelled")                   X(TN_E_POLICY, -13, "policy forbids the only way left") \
  X(TN_E_NOT_FOUND, -14, "no such name or id")          X(TN_E_EXISTS, -15, "name or id taken") \
  X(TN_E_STALE, -16, "id of an old generation: intern again") X(TN_E_LIMIT, -17, "a stated limit was passed") \
  X(TN_E_ABI, -18, "ABI versions do not meet")          X(TN_E_EXT, -19, "unknown critical extension") \
  X(TN_E_BUSY, -20, "in use")                           X(TN_E_IO, -21, "file or transport failed") \
  X(TN_E_DENIED, -22, "no permission, or not trusted")  X(TN_E_GONE, -23, "withdrawn function") \
  X(TN_E_BUG, -24, "a promise of Tenon or a plugin was broken")
#define TN_ENUM_(name, value, rest) name = value,
enum { TN_STATUSES(TN_ENUM_) TN_STATUS_END_ = 1 };

/* Why a call failed. Caller's memory; the callee fills all of it on failure, nothing on success. Text is cut, never
 * overrun: what / where / why / try as lines. `id` is the stable number behind TN-SHAPE-002: family << 16 | number. */
typedef struct tn_diag { /* [frozen] 256 bytes */
  uint32_t size; tn_status status; int64_t native_code;
  uint32_t native_domain, flags, id, len; /* domain: device kind whose driver said native_code; len: bytes of msg */
  char msg[224];
} tn_diag;
#define TN_DIAG_RETRY 1u /* the same call may succeed later */

/* ---- element and tensor types --------------------------------------------------------------------------------- */
#define TN_DTYPES(X) /* name, id (bit in a dtype mask), bits per element */ \
  X(TN_BOOL, 1, 8)  X(TN_U4, 2, 4)   X(TN_I4, 3, 4)    X(TN_U8, 4, 8)    X(TN_I8, 5, 8)   X(TN_U16, 6, 16) \
  X(TN_I16, 7, 16)  X(TN_U32, 8, 32) X(TN_I32, 9, 32)  X(TN_U64, 10, 64) X(TN_I64, 11, 64) \
  X(TN_F8E4M3, 16, 8) X(TN_F8E5M2, 17, 8) X(TN_F16, 18, 16) X(TN_BF16, 19, 16) X(TN_F32, 20, 32) X(TN_F64, 21, 64) \
  X(TN_C64, 24, 64) X(TN_C128, 25, 128)
enum { TN_DTYPES(TN_ENUM_) TN_DTYPE_END_ = 64 };
enum { TN_SPACE_DEVICE = 0, TN_SPACE_PINNED, TN_SPACE_UNIFIED, TN_SPACE_PAGEABLE }; /* kinds of memory */
/* Numbers from TN_LAYOUT_OPAQUE on are given by the core, one to each layout name that kernels state (tn_kernel_packed): the
 * bytes are then known to these kernels alone, strides are row-major ones and mean nothing. 1..127 are no layouts. */
enum { TN_LAYOUT_STRIDED = 0, TN_LAYOUT_OPAQUE = 128 };

/* One operand's type. dim >= 0, or a symbol TN_SYM(k), which stands for a size of 2 or more (0 and 1 are always numbers,
 * so that broadcasting is decided; only tn_dims.fresh may turn out smaller); stride in elements, may be 0, negative or a symbol. Sub-byte types are
 * packed along the last axis, rows start on a byte. align_log2 is a promise about address + offset, 0..8: it is part of
 * the type, hence of every plan key, so a plan chosen under an ALIGN constraint never sees a less aligned view. */
typedef struct tn_type { /* [frozen] 136 bytes; unused dims and strides are 0, so that memcmp is equality */
  uint8_t dtype, rank, layout, space, align_log2, flags; uint16_t reserved;
  int64_t dim[TN_MAX_RANK], stride[TN_MAX_RANK];
} tn_type;
#define TN_SYM(k)    (INT64_MIN + (int64_t)(k)) /* symbol number k, 0 <= k < TN_SYM_MAX */
#define TN_SYM_MAX   (1 << 20)
#define TN_IS_SYM(d) ((d) < INT64_MIN + TN_SYM_MAX)

/* Arithmetic over dims that may be symbols. Numbers give numbers; a symbol gives an expression's symbol. Overflow and
 * division by zero make the whole rule fail with TN_E_SHAPE; the caller need not check in between. */
enum { TN_DIM_ADD, TN_DIM_SUB, TN_DIM_MUL, TN_DIM_FLOORDIV, TN_DIM_MOD, TN_DIM_MIN, TN_DIM_MAX };
enum { TN_DIM_EQ, TN_DIM_LE, TN_DIM_LT, TN_DIM_DIVIDES };
typedef struct tn_dims { /* [extensible] made by the core, valid during the rule */
  uint32_t size, reserved; void* ctx;
  int64_t (*calc)(void* ctx, uint32_t dim_op, int64_t a, int64_t b);
  /* Demand a relation: false for numbers -> TN_E_SHAPE; undecided for symbols -> becomes a guard of the plan. */
  tn_status (*require)(void* ctx, uint32_t relation, int64_t a, int64_t b, tn_diag*);
  int64_t (*fresh)(void* ctx, int64_t lo, int64_t hi); /* a size known only after running (nonzero, unique) */
} tn_dims;

/* ---- scalar programs: what pointwise, reduce and epilogues compute --------------------------------------------- */
/* Instruction i defines value i, once; a, b, c name earlier values unless the table says otherwise. `type` is the
 * result's dtype. Arithmetic exists for f32, f64 and the 8..64-bit integers; f16, bf16, f8 and 4-bit are storage types,
 * touched only by INPUT, CAST, BITCAST and outputs (the tracer inserts the casts). Operands of one instruction have one
 * type, comparisons give TN_BOOL. Constants are 8-byte slots of the launch's push bytes, so they are in no cache key.
 * The core validates every program (order, types, limits) before a plugin sees it. */
typedef struct tn_inst { uint8_t op, type; uint16_t a, b, c; } tn_inst; /* [frozen] 8 bytes, frozen encoding */
#define TN_PROGRAM_MAX_INST 64
#define TN_PROGRAM_MAX_IN   16
#define TN_PROGRAM_MAX_OUT  4
#define TN_INDEX_FLAT       0xFFFFu
/* X(name, code, operands, max error f32, max error f64, meaning). Errors in ULP of the exact result; 0.5 = correctly
 * rounded. A subnormal result, and a subnormal factor of a matrix product, may be taken as a zero of its sign unless TN_MATH_SUBNORMAL. Float rules: IEEE 754,
 * NaN in -> NaN out (payload free) unless said otherwise, no trap, no contraction but FMA. Integers wrap (two's complement). */
#define TN_OPCODES(X) \
  X(TN_OP_INPUT,   0, 0, 0,   0,   "a = input number; element at the current index") \
  X(TN_OP_CONST,   1, 0, 0,   0,   "a = push slot; low bytes of the slot, little endian") \
  X(TN_OP_INDEX,   2, 0, 0,   0,   "a = axis of the output, or TN_INDEX_FLAT; integer types") \
  X(TN_OP_CAST,    3, 1, 0.5, 0.5, "float->float nearest even; float->int toward 0, saturating, NaN->0; int->int wraps; ->bool x!=0; f8e4m3 saturates") \
  X(TN_OP_BITCAST, 4, 1, 0,   0,   "same bits, same size") \
  X(TN_OP_SELECT,  5, 3, 0,   0,   "a bool: a ? b : c; the dead side has no effect") \
  X(TN_OP_ISNAN,   6, 1, 0,   0,   "bool; integers: false") \
  X(TN_OP_PHILOX,  7, 2, 0,   0,   "Philox4x32-10: a = u64 counter, b = u64 key, c = word 0..3 (literal); u32") \
  X(TN_OP_NEG,     8, 1, 0,   0,   "flips the sign, also of NaN and 0")   X(TN_OP_ABS,   9, 1, 0, 0, "least int stays") \
  X(TN_OP_SIGN,   10, 1, 0,   0,   "-1, 0, 1; keeps -0")                  X(TN_OP_FLOOR, 11, 1, 0, 0, "int: itself") \
  X(TN_OP_CEIL,   12, 1, 0,   0,   "int: itself")                         X(TN_OP_TRUNC, 13, 1, 0, 0, "int: itself") \
  X(TN_OP_RINT,   14, 1, 0,   0,   "ties to even")                        X(TN_OP_SQRT,  15, 1, 1, 0.5, "x<0: NaN; -0: -0") \
  X(TN_OP_RSQRT,  16, 1, 2,   2,   "+-0: +-Inf")                          X(TN_OP_EXP,   17, 1, 3, 1, "") \
  X(TN_OP_EXPM1,  18, 1, 3,   2,   "exact 0 at 0")                        X(TN_OP_LOG,   19, 1, 3, 1, "0: -Inf; x<0: NaN") \
  X(TN_OP_LOG1P,  20, 1, 3,   2,   "exact 0 at 0")                        X(TN_OP_SIN,   21, 1, 4, 2, "any |x|; Inf: NaN") \
  X(TN_OP_COS,    22, 1, 4,   2,   "any |x|; Inf: NaN")                   X(TN_OP_ATAN,  23, 1, 4, 2, "") \
  X(TN_OP_TANH,   24, 1, 5,   2,   "+-1 for large |x|, never NaN")        X(TN_OP_ERF,   25, 1, 8, 4, "") \
  X(TN_OP_ADD,    32, 2, 0.5, 0.5, "")                                    X(TN_OP_SUB,   33, 2, 0.5, 0.5, "") \
  X(TN_OP_MUL,    34, 2, 0.5, 0.5, "")  X(TN_OP_DIV, 35, 2, 2.5, 0.5, "int: toward 0, x/0 = 0, least/-1 = least") \
  X(TN_OP_REM,    36, 2, 0,   0,   "sign of a (fmod); int x rem 0 = 0")   X(TN_OP_POW,   37, 2, 16, 4, "C pow's special cases; int: wraps, b<0: 0 but +-1") \
  X(TN_OP_MIN,    38, 2, 0,   0,   "NaN wins; -0 < +0")                   X(TN_OP_MAX,   39, 2, 0, 0, "NaN wins; -0 < +0") \
  X(TN_OP_ATAN2,  40, 2, 6,   4,   "C atan2's special cases")             X(TN_OP_FMA,   41, 3, 0.5, 0.5, "a*b+c, one rounding") \
  X(TN_OP_LT,     48, 2, 0,   0,   "bool; NaN: false")                    X(TN_OP_LE,    49, 2, 0, 0, "bool; NaN: false") \
  X(TN_OP_EQ,     50, 2, 0,   0,   "bool; NaN: false")                    X(TN_OP_NE,    51, 2, 0, 0, "bool; NaN: true") \
  X(TN_OP_AND,    52, 2, 0,   0,   "bits; bool: logic")                   X(TN_OP_OR,    53, 2, 0, 0, "likewise") \
  X(TN_OP_XOR,    54, 2, 0,   0,   "likewise")                            X(TN_OP_NOT,   55, 1, 0, 0, "likewise") \
  X(TN_OP_SHL,    56, 2, 0,   0,   "b outside 0..bits-1: 0")              X(TN_OP_SHR,   57, 2, 0, 0, "signed: arithmetic; b outside: 0 or -1")
#define TN_ENUM6_(name, code, operands, e32, e64, meaning) name = code,
enum { TN_OPCODES(TN_ENUM6_) TN_OP_END_ = 64 };

typedef struct tn_program { /* [extensible]; interned by the core as part of an attribute set */
  uint32_t size, id;                    /* id: 0 from a caller; the core's interned id when a plugin or app receives it */
  uint64_t opcodes;                     /* bit per opcode used; the core fills it, callers may leave 0 */
  uint8_t n_inst, n_in, n_out, n_slots; /* n_slots: 8-byte push slots read, 0..n_slots-1 */
  uint16_t out[TN_PROGRAM_MAX_OUT];     /* values that leave the program */
  uint32_t reserved; const tn_inst* inst;
} tn_program;

/* ---- ops -------------------------------------------------------------------------------------------------------- */
enum { TN_ATTR_I64 = 1, TN_ATTR_F64, TN_ATTR_STRING, TN_ATTR_I64S, TN_ATTR_F64S, TN_ATTR_TYPE, TN_ATTR_PROGRAM };
typedef struct tn_attr { /* [frozen] 24 bytes; sorted by key; core keys in ops.def, others FNV-1a-32 of the name | bit 31 */
  uint32_t key, type; union { int64_t i; double f; const void* p; } v; uint64_t len; /* len: elements behind p */
} tn_attr;
enum { TN_MATH_DETERMINISTIC = 1, TN_MATH_TF32 = 2, TN_MATH_SUBNORMAL = 4 }; /* bits 8..15: accumulator dtype, 0 = default */

/* One op on given types: what kernels are asked about and rules work on. Holds no scalar constants: they are pushed. */
typedef struct tn_op { /* [extensible] */
  uint32_t size, math_flags; const tn_ext* next;
  uint64_t op_id; /* core: number in ops.def (< 2^16); others: FNV-1a-64 of "com.vendor.op", bit 63 set */
  uint16_t op_version, n_in, n_out, n_attr;
  const tn_type* type; /* n_in inputs, then n_out outputs; dtype 0 = optional operand that is absent */
  const tn_attr* attr; uint32_t push_bytes, reserved;
} tn_op;

/* ---- builder: where rules and apps write graphs. Values are numbers, there are no tensors and no handles to free. - */
typedef struct tn_builder tn_builder; /* one thread at a time */
typedef struct tn_push { uint64_t bits; uint32_t from, reserved; } tn_push; /* [frozen] literal if from == TN_NONE, else
                                         slot number of the op being expanded: runtime scalars stay runtime scalars */
typedef struct tn_emit { /* [extensible] one node */
  uint32_t size, math_flags; const tn_ext* next; uint64_t op_id;
  uint16_t op_version, n_in, n_out, n_attr; /* op_version 0: newest */
  const tn_attr* attr; const uint32_t* in; uint32_t* out; /* in: values, TN_NONE = absent; out: n_out values, filled */
  const tn_push* push; uint32_t n_push, reserved;
} tn_emit;
typedef struct tn_builder_api { /* [extensible] the same table for plugins (tn_host), core ops and apps (tn_builder_table) */
  uint32_t size, reserved;
  /* Add a node; infers output types. TN_E_SHAPE, TN_E_DTYPE, TN_E_NOT_FOUND. After the first error all else fails too. */
  tn_status (*emit)(tn_builder*, const tn_emit*, tn_diag*);
  tn_status (*input)(tn_builder*, const tn_type*, uint32_t* out_value, tn_diag*);
  tn_status (*constant)(tn_builder*, const tn_type*, const void* data, uint32_t* out_value, tn_diag*); /* copied */
  tn_status (*output)(tn_builder*, const uint32_t* values, uint32_t n, tn_diag*);
  tn_status (*type)(tn_builder*, uint32_t value, tn_type* out, tn_diag*);
  const tn_dims* (*dims)(tn_builder*);
  /* Open a nested region (bodies of if, while, scan, call): its builder lives until the parent's end. Provisional. */
  tn_status (*region)(tn_builder*, tn_builder** out_region, uint32_t* out_region_value, tn_diag*);
  void (*note)(tn_builder*, const char* where); /* source line for later errors, until the next note; copied */
} tn_builder_api;

/* ---- op definitions: core ops and third-party ops come through this same struct -------------------------------- */
typedef struct tn_rule { /* [extensible] input of expand, vjp, jvp, batch */
  uint32_t size, kind; const tn_ext* next; const tn_op* op;
  const uint32_t* in;    /* op->n_in values */
  const uint32_t* out;   /* op->n_out values of the op itself; NULL for expand and batch */
  const uint32_t* seed;  /* vjp: a cotangent per output; jvp: a tangent per input; TN_NONE = zero; else NULL */
  const int32_t* axis;   /* batch: mapped axis per input, -1 = not mapped; else NULL */
  uint32_t* result;      /* expand, jvp, batch: n_out values; vjp: n_in values; TN_NONE = zero */
  int32_t* result_axis;  /* batch: mapped axis per output; the core moves it to 0 for callers */
  uint64_t need;         /* bit per result that is wanted, bit 63 also for all after it; others may stay TN_NONE */
} tn_rule;
enum { TN_RULE_EXPAND = 1, TN_RULE_VJP, TN_RULE_JVP, TN_RULE_BATCH };
typedef struct tn_cost { uint32_t size, bound; double flops, bytes; } tn_cost; /* [extensible] */
enum { TN_BOUND_MEMORY, TN_BOUND_COMPUTE, TN_BOUND_VIEW };
typedef struct tn_attr_def { uint32_t key, type, flags, reserved; const char* name; tn_attr fallback; } tn_attr_def; /* [frozen] */
#define TN_ATTR_REQUIRED 1u
typedef tn_status (*tn_rule_fn)(void* ctx, tn_builder*, const tn_rule*, tn_diag*);
/* infer fills dtype, rank, dim and stride (dense in some axis order unless the op is a view); the core sets space and
 * alignment.
 * A missing rule means "expand, then ask the parts": an op with expand has every derivative. infer is required, and
 * expand unless some kernel candidate exists. Rules are pure, re-entrant, keep nothing, and are checked at registration
 * against infer. name, attr_defs and ctx live until the plugin closes or the runtime ends. */
typedef struct tn_op_def { /* [extensible] */
  uint32_t size, flags; const tn_ext* next; uint64_t op_id;
  uint16_t version, n_in, n_out, n_attr_defs; /* TN_VARIADIC allowed for n_in, n_out. An op with an open number of outputs has
                                                 as many as its program `post` writes, else its program `program`, else 1 */
  const char* name; const tn_attr_def* attr_defs;
  tn_status (*infer)(void* ctx, const tn_op*, const tn_dims*, tn_type* out, tn_diag*); /* op->type holds inputs only */
  tn_rule_fn expand, vjp, jvp, batch;
  /* NULL for ordinary ops. A view op aliases input 0: out[0] of infer holds dims and strides, this gives its first element's
   * offset (may be a symbol). No kernel is asked; the core makes the view, also inside composites and graphs. */
  tn_status (*view)(void* ctx, const tn_op*, const tn_dims*, int64_t* out_offset_elements, tn_diag*);
  tn_status (*cost)(void* ctx, const tn_op*, tn_cost* out, tn_diag*); /* symbols are already replaced by sizes */
  void* ctx;
} tn_op_def;
enum { TN_DEF_MATMUL = 1, TN_DEF_WIDE = 2, TN_DEF_RANDOM = 4, TN_DEF_EFFECT = 8, /* flags; precision class: matmul-like,
                                                 wide accumulation, or neither = follows its inputs */
       TN_DEF_ELEMENTWISE = 16 /* element i of each output needs element i of the inputs only: the core broadcasts inputs to
                                  output 0 (stride 0) and merges adjacent axes before it asks kernels; an output may be the
                                  very view of an input of equal type */ };

/* ---- devices and capabilities ------------------------------------------------------------------------------------ */
enum { TN_KIND_CPU = 1, TN_KIND_CUDA, TN_KIND_HIP, TN_KIND_OPENCL, TN_KIND_VULKAN }; /* the API that addresses it;
                                                       vendor kinds: FNV-1a-32 of the reverse-DNS name | bit 31 */
enum { TN_DEVICE_EMULATED = 1, TN_DEVICE_INTEGRATED = 2, TN_DEVICE_PARTITION = 4, TN_DEVICE_UUID_TRUSTED = 8,
       TN_DEVICE_INLINE = 16 /* launches and copies have finished when they return: the core needs no timeline */ };
typedef struct tn_device_info { /* [extensible] filled by devices(); must not start the driver's slow part */
  uint32_t size, index; const tn_ext* next; uint32_t kind, flags;
  uint8_t uuid[16]; uint32_t pci_domain, pci_bdf, vendor_id, device_id; /* 0 = unknown; the core merges routes */
  uint64_t mem_total_bytes, mem_free_bytes, dtype_storage, dtype_compute, dtype_matrix; /* masks of 1 << dtype */
  uint32_t n_spaces, reserved; char name[64], driver[64];
} tn_device_info;

enum { TN_CAP_U64, TN_CAP_I64, TN_CAP_F64, TN_CAP_TEXT };
enum { TN_FROM_MEASURED = 1, TN_FROM_DRIVER, TN_FROM_TABLE, TN_FROM_GUESS }; /* provenance */
typedef struct tn_cap { /* [frozen] keys, types, units: caps.def; vendor keys have bit 31 */
  uint32_t key; uint16_t type, provenance; union { uint64_t u; int64_t i; double f; const char* s; } v;
} tn_cap;

/* ---- small words both sides use ------------------------------------------------------------------------------------- */
enum { TN_LOG_DEBUG, TN_LOG_INFO, TN_LOG_WARN, TN_LOG_ERROR };
typedef void (*tn_range_fn)(void* arg, int64_t begin, int64_t end, uint32_t worker); /* worker < thread count */
typedef struct tn_plugin tn_plugin;
typedef struct tn_host tn_host;
typedef const tn_plugin* (*tn_plugin_query_fn)(uint32_t abi, const tn_host* host);

/* Frozen sizes (LP64). */
#if defined(__cplusplus)
#define TN_CHECK_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type)
#elif __STDC_VERSION__ >= 201112L
#define TN_CHECK_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#else
#define TN_CHECK_SIZE(type, bytes) struct tn_ext
#endif
#if UINTPTR_MAX == UINT64_MAX
TN_CHECK_SIZE(tn_ext, 16);  TN_CHECK_SIZE(tn_diag, 256); TN_CHECK_SIZE(tn_type, 136); TN_CHECK_SIZE(tn_inst, 8);
TN_CHECK_SIZE(tn_attr, 24); TN_CHECK_SIZE(tn_push, 16);  TN_CHECK_SIZE(tn_cap, 16);   TN_CHECK_SIZE(tn_attr_def, 48);
#endif

#ifdef __cplusplus
}
#endif
#endif
