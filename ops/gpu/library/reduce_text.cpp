// ops/gpu/library/reduce_text.cpp - texts of accumulators and of the two forms.
#include "ops/gpu/library/reduce_text.h"

#include "ops/gpu/program.h"

namespace tenon::gpu {
namespace {

bool is_float(uint32_t d) { return d == TN_F32 || d == TN_F64; }
bool has(const Caps& caps, uint32_t dtype) { return (caps.arithmetic >> dtype & 1) != 0; }

// bool is folded as 0 or 1: "or" is the greatest, "and" the least.
int64_t plain_monoid(int64_t monoid, uint32_t value) {
  if (value != TN_BOOL) return monoid;
  if (monoid == TN_MONOID_SUM || monoid == TN_MONOID_OR) return TN_MONOID_MAX;
  if (monoid == TN_MONOID_PROD || monoid == TN_MONOID_AND) return TN_MONOID_MIN;
  return monoid;
}

uint8_t held_for(int64_t monoid, uint32_t value, const Caps* caps) {
  const bool sums = monoid == TN_MONOID_SUM || monoid == TN_MONOID_PROD;
  switch (value) {
    case TN_BOOL: case TN_U8: case TN_U16: case TN_U32: return TN_U32;
    case TN_I8: case TN_I16: case TN_I32: return TN_I32;
    case TN_F32: {
      if (caps == nullptr) return TN_F32;
      // A product's error grows with every factor whatever the order, so it is wider where that exists. On a processor a
      // wider sum is cheaper than a compensated one.
      const bool wide = has(*caps, TN_F64) && (monoid == TN_MONOID_PROD || caps->device_class == DeviceClass::Processor);
      return sums && wide ? TN_F64 : TN_F32;
    }
    default: return static_cast<uint8_t>(value);
  }
}

std::string literal(uint8_t held, const std::string& text) {
  switch (held) {
    case TN_U32: return text + "u";
    case TN_I32: return text;
    case TN_U64: return "TN_U64(" + text + ")";
    case TN_I64: return "TN_I64(" + text + ")";
    case TN_F32: return "TN_F32(" + text + ")";
    default: return "TN_F64(" + text + ")";
  }
}

// The greatest (or least) value of the type that was folded, as held.
std::string extreme(const Fold& f, bool greatest) {
  switch (f.value) {
    case TN_F32: return greatest ? "TN_F32_OF_BITS(0x7F800000u)" : "TN_F32_OF_BITS(0xFF800000u)";
    case TN_F64: return greatest ? "TN_F64_OF_BITS(0x7FF0000000000000ul)" : "TN_F64_OF_BITS(0xFFF0000000000000ul)";
    case TN_BOOL: return greatest ? "1u" : "0u";
    case TN_U8: return greatest ? "255u" : "0u";
    case TN_U16: return greatest ? "65535u" : "0u";
    case TN_U32: return greatest ? "0xFFFFFFFFu" : "0u";
    case TN_U64: return greatest ? "0xFFFFFFFFFFFFFFFFul" : "TN_U64(0)";
    case TN_I8: return greatest ? "127" : "(-128)";
    case TN_I16: return greatest ? "32767" : "(-32768)";
    case TN_I32: return greatest ? "2147483647" : "(-2147483647 - 1)";
    default: return greatest ? "TN_I64(0x7FFFFFFFFFFFFFFFul)" : "TN_I64(0x8000000000000000ul)";
  }
}

std::string identity(const Fold& f) {
  switch (f.monoid) {
    case TN_MONOID_PROD: return literal(f.held, "1");
    case TN_MONOID_MAX: return extreme(f, false);
    case TN_MONOID_MIN: return extreme(f, true);
    case TN_MONOID_AND:
      return f.held == TN_U32 ? "0xFFFFFFFFu" : f.held == TN_U64 ? "0xFFFFFFFFFFFFFFFFul" : literal(f.held, "-1");
    default: return literal(f.held, "0");
  }
}

std::string bits_name(const Fold& f) { return f.held == TN_F64 ? "F64" : "F32"; }
std::string nan_test(const Fold& f, const std::string& x) { return std::string("tn_isnan_") + (f.held == TN_F64 ? "f64(" : "f32(") + x + ")"; }

// A NaN wins, and -0 is below +0. Without branches, so that loops over it can be vectorised.
std::string extreme_body(const Fold& f, bool greatest) {
  const std::string order = greatest ? "a > b" : "a < b";
  if (!is_float(f.held)) return "  return " + order + " ? a : b;\n";
  const std::string k = bits_name(f), mix = greatest ? " & " : " | ";
  return std::string("  ") + register_type(f.held) + " r = " + order + " ? a : b;\n  r = a == b ? TN_" + k + "_OF_BITS(TN_BITS_OF_" + k + "(a)" + mix +
         "TN_BITS_OF_" + k + "(b)) : r;\n  r = " + nan_test(f, "b") + " ? b : r;\n  return " + nan_test(f, "a") + " ? a : r;\n";
}

// Integers wrap: arithmetic on unsigned registers, since signed overflow has no meaning in the dialect's languages.
std::string arithmetic_body(const Fold& f, const char* op) {
  const std::string sign = op;
  if (f.held == TN_I32) return "  return TN_I32(TN_U32(a)" + sign + "TN_U32(b));\n";
  if (f.held == TN_I64) return "  return TN_I64(TN_U64(a)" + sign + "TN_U64(b));\n";
  return "  return a" + sign + "b;\n";
}

// Whether x at xi goes before a at ai: first of equals, a NaN wins, the first NaN. Position ~0 stands for nothing yet.
std::string better_function(const Fold& f) {
  const std::string t = register_type(f.held), order = f.monoid == TN_MONOID_ARGMAX ? "x > a" : "x < a";
  std::string nan;
  if (is_float(f.held))
    nan = "  bool xn = " + nan_test(f, "x") + ", an = " + nan_test(f, "a") + ";\n  if (xn || an) return xn && (!an || xi < ai);\n";
  return "TN_FN bool tn_better(" + t + " x, tn_uint xi, " + t + " a, tn_uint ai) {\n"
         "  if (xi == 0xFFFFFFFFu || ai == 0xFFFFFFFFu) return xi != 0xFFFFFFFFu;\n" + nan + "  return " + order + " || (x == a && xi < ai);\n}\n";
}

// ---- running values: names end in `at`, "" or "[l]" ----

std::string declare(const Fold& f, const std::string& array) {
  const std::string t = local_type(f.held);
  std::string out = "  " + t + " acc" + array + ";";
  if (f.compensated) out += " " + t + " err" + array + ";";
  if (f.arg) out += " tn_uint place" + array + ";";
  return out + "\n";
}
std::string reset(const Fold& f, const std::string& at) {
  std::string out = "acc" + at + " = " + (f.arg ? literal(f.held, "0") : identity(f)) + ";";
  if (f.compensated) out += " err" + at + " = " + literal(f.held, "0") + ";";
  if (f.arg) out += " place" + at + " = 0xFFFFFFFFu;";
  return out;
}
// Takes the value `x` (and its position `xi`) in.
std::string take(const Fold& f, const std::string& at, const std::string& x, const std::string& xi) {
  const std::string acc = "acc" + at, t = local_type(f.held);
  if (f.arg) return "if (tn_better(" + x + ", " + xi + ", " + acc + ", place" + at + ")) { " + acc + " = " + x + "; place" + at + " = " + xi + "; }";
  if (!f.compensated) return acc + " = tn_join(" + acc + ", " + x + ");";
  // The rounding error of each addition is itself added up (Knuth's two-sum).
  return "{ " + t + " sum = " + acc + " + " + x + "; " + t + " part = sum - " + acc + "; err" + at + " += (" + acc + " - (sum - part)) + (" + x + " - part); " + acc + " = sum; }";
}
// The value with its error; an infinite sum has no error worth adding.
std::string settle(const Fold& f, const std::string& at) {
  if (!f.compensated) return "";
  const std::string acc = "acc" + at;
  const std::string finite = f.held == TN_F64 ? "(TN_BITS_OF_F64(" + acc + ") & 0x7FF0000000000000ul) != 0x7FF0000000000000ul"
                                              : "(TN_BITS_OF_F32(" + acc + ") & 0x7F800000u) != 0x7F800000u";
  return "  if (" + finite + ") " + acc + " += err" + at + ";\n";
}

class Writer {
 public:
  Writer(const Caps& caps, const ReduceStep& r, const Piece& p, uint32_t arg_first, bool empty)
      : caps_(caps), r_(r), piece_(p), arg_first_(arg_first), empty_(empty), step_(name()) {}

  tn_status write(Step* out, tn_diag* diag) {
    bind();
    KernelSpec& spec = step_.spec;
    spec.needs |= needs_of(r_.fold.held) | needs_of(r_.fold.value);
    spec.helpers = kGroupNumber;
    spec.helpers += r_.fold.arg ? better_function(r_.fold) : join_function(r_.fold);
    spec.group[0] = r_.threads;
    spec.defines.push_back({"GROUP", std::to_string(r_.threads)});
    if (r_.lanes > 1) spec.defines.push_back({"LANES", std::to_string(r_.lanes)});
    if (r_.grouped) grouped();
    else each();
    int64_t kept = 1;
    for (int d = 0; d < r_.kept; ++d) kept *= piece_.size[d];
    const uint64_t work = static_cast<uint64_t>(kept) * r_.chunks, groups = r_.grouped ? work : (work + r_.threads - 1) / r_.threads;
    if (!spread_groups(&step_, caps_, groups))
      return refuse(diag, TN_E_UNSUPPORTED, "reduce: too many work-groups\nwhy: %llu, the device takes %llu times %llu\ntry: reduce a smaller tensor",
                    static_cast<unsigned long long>(groups), static_cast<unsigned long long>(caps_.max_groups[0]), static_cast<unsigned long long>(caps_.max_groups[1]));
    *out = step_.finish();
    return TN_OK;
  }

 private:
  std::string name() const { return r_.grouped ? "tn_reduce_group" : "tn_reduce_each"; }

  void bind() {
    int64_t kept = 1, gone = 1;
    for (int d = 0; d < r_.kept; ++d) kept *= piece_.size[d];
    for (int d = r_.kept; d < r_.kept + r_.gone; ++d) gone *= piece_.size[d];
    for (size_t k = 0; k < r_.space.access.size(); ++k) {
      const Access& a = r_.space.access[k];
      bind_operand(&step_, r_.space, a, piece_);
      bind_strides(&step_, a, "k", 0, r_.kept);
      const bool input = k < static_cast<size_t>(r_.inputs);
      if (input) bind_strides(&step_, a, "g", r_.kept, r_.kept + r_.gone);
      (input ? inputs_ : outputs_).push_back(a.name);
    }
    if (empty_) gone = 0;
    step_.scalar_u32("n_kept", static_cast<uint32_t>(kept));
    step_.scalar_u32("n_gone", static_cast<uint32_t>(gone));
    step_.scalar_u32("n_chunks", r_.chunks);
    step_.scalar_u32("chunk", static_cast<uint32_t>((gone + r_.chunks - 1) / r_.chunks));
    if (r_.kept > 1) bind_sizes(&step_, piece_, "k", 1, r_.kept);  // the outermost is what remains
    if (r_.gone > 1) bind_sizes(&step_, piece_, "g", r_.kept + 1, r_.kept + r_.gone);
    if (r_.fold.arg && !r_.from_parts) step_.scalar_u32("arg_first", arg_first_);
  }

  // Variables at_NAME of all operands at the output numbered `flat`.
  std::string outer(const std::string& flat) const {
    std::vector<std::string> all = inputs_;
    all.insert(all.end(), outputs_.begin(), outputs_.end());
    std::string out;
    for (const std::string& n : all) out += "  tn_uint at_" + n + " = " + start_text(n) + ";\n";
    return out + "  " + walk(all, flat, "k", r_.kept);
  }
  // Sizes are bound from axis 1 on, under numbers from 0.
  static std::string walk(const std::vector<std::string>& names, const std::string& flat, const char* prefix, int count) {
    std::string out;
    auto add = [&](int d, const std::string& index) {
      for (const std::string& n : names) out += " at_" + n + " += " + index + " * " + n + "_" + prefix + std::to_string(d) + ";";
    };
    if (count == 1) return add(0, flat), out + "\n";
    out = "{ tn_uint rest = " + flat + ", index = 0u;";
    for (int d = count - 1; d > 0; --d) {
      const std::string size = prefix + std::to_string(d - 1);
      out += " index = rest % " + size + "; rest /= " + size + ";";
      add(d, "index");
    }
    add(0, "rest");
    return out + " }\n";
  }

  // Statements that take element `r` of the reduced space into the running value `at`.
  std::string element(const std::string& at, const std::string& r) {
    std::string text;
    for (const std::string& n : inputs_) text += " tn_uint from_" + n + " = at_" + n + ";";
    if (r_.gone == 1) {
      for (const std::string& n : inputs_) text += " from_" + n + " += " + r + " * " + n + "_g0;";
    } else {
      std::string inner = walk(inputs_, r, "g", r_.gone);
      for (size_t p = inner.find(" at_"); p != std::string::npos; p = inner.find(" at_", p)) inner.replace(p, 4, " from_");
      text += " " + inner;
    }
    std::vector<std::string> loaded;
    for (size_t k = 0; k < inputs_.size(); ++k) {
      const uint32_t d = r_.space.access[k].dtype;
      text += std::string(" const ") + register_type(d) + " x" + std::to_string(k) + " = " + load_text(d, inputs_[k], "from_" + inputs_[k]) + ";";
      loaded.push_back("x" + std::to_string(k));
    }
    const Fold& f = r_.fold;
    if (r_.from_parts) return text + " " + take(f, at, "x0", "x1");
    std::string x = "x0";
    uint32_t dtype = r_.space.access[0].dtype;
    if (r_.pre != nullptr) {
      const ProgramText pre = program_text(*r_.pre, {"p_", loaded, {}}, &step_);
      text += "\n" + pre.code;
      x = pre.out[0], dtype = pre.out_dtype[0];
    }
    text += std::string(" const ") + register_type(f.value) + " value = " + widen_text(dtype, x) + "; const " + register_type(f.held) + " held = " + cast_text(f.value, f.held, "value") + ";";
    return text + " " + take(f, at, "held", "arg_first + " + r);
  }

  // Stores acc (and place): as a part, or through the post-program.
  std::string finish() {
    const Fold& f = r_.fold;
    if (r_.to_parts) {
      std::string text = "    " + store_text(f.held, "part", "at_part + chunk_number", "acc");
      if (f.arg) text += " " + store_text(TN_U32, "part_place", "at_part_place + chunk_number", "place");
      return text + "\n";
    }
    const uint32_t have = result_dtype(f);
    std::string text = std::string("    const ") + register_type(have) + " result = " +
                       (f.arg ? std::string("TN_I64(place)") : cast_text(f.held, f.value, "acc")) + ";\n";
    std::vector<std::string> value = {"result"};
    std::vector<uint8_t> dtype = {static_cast<uint8_t>(have)};
    if (r_.post != nullptr) {
      uint32_t want = 0;
      for (uint32_t i = 0; i < r_.post->n_inst; ++i)
        if (r_.post->inst[i].op == TN_OP_INPUT) want = r_.post->inst[i].type;
      std::string x = "result";
      if (want != 0 && want != have) text += std::string("    const ") + register_type(want) + " wanted = " + cast_text(have, want, "result") + ";\n", x = "wanted";
      const ProgramText post = program_text(*r_.post, {"q_", {x}, {}}, &step_);
      text += post.code;
      value = post.out, dtype = post.out_dtype;
    }
    for (size_t k = 0; k < outputs_.size(); ++k) {
      const uint32_t d = r_.space.access[static_cast<size_t>(r_.inputs) + k].dtype;
      text += "    " + store_text(d, outputs_[k], "at_" + outputs_[k], cast_text(dtype[k], d, value[k])) + "\n";
    }
    return text;
  }

  void each() {
    const Fold& f = r_.fold;
    const bool lanes = r_.lanes > 1;
    std::string one, many;
    if (!inputs_.empty()) {
      one = element("", "r");
      if (lanes) many = element("s[l]", "(r + TN_U32(l))");
    }
    const std::string end = finish();
    std::string& b = step_.spec.body;
    b = "  const tn_uint number = TN_GROUP_NUMBER * GROUP + TN_LID(x);\n"
        "  if (number < n_kept * n_chunks) {\n"
        "  const tn_uint kept = number % n_kept, chunk_number = number / n_kept;\n";
    b += outer("kept");
    b += "  tn_uint r = chunk_number * chunk;\n  const tn_uint stop = r + chunk < n_gone ? r + chunk : n_gone;\n";
    b += declare(f, "") + "  " + reset(f, "") + "\n";
    if (lanes) b += lane_loop(many);
    if (!one.empty()) b += "  for (; r < stop; r++) {" + one + " }\n";
    b += settle(f, "") + end + "  }\n";
  }

  // Running values of their own for LANES neighbours, joined in pairs.
  std::string lane_loop(const std::string& many) const {
    const Fold& f = r_.fold;
    std::string declared = declare(f, "s[LANES]"), out = declared;
    out += "  TN_UNROLL for (int l = 0; l < LANES; l++) { " + reset(f, "s[l]") + " }\n";
    out += "  for (; r < stop && stop - r >= TN_U32(LANES); r += TN_U32(LANES)) {\n    TN_UNROLL for (int l = 0; l < LANES; l++) {" + many + " }\n  }\n";
    if (f.compensated) out += "  TN_UNROLL for (int l = 0; l < LANES; l++) {" + settle(f, "s[l]") + "  }\n";
    out += "  TN_UNROLL for (int half_ = LANES / 2; half_ > 0; half_ /= 2) {\n    TN_UNROLL for (int l = 0; l < half_; l++) { ";
    if (f.arg) out += "if (tn_better(accs[l + half_], places[l + half_], accs[l], places[l])) { accs[l] = accs[l + half_]; places[l] = places[l + half_]; }";
    else out += "accs[l] = tn_join(accs[l], accs[l + half_]);";
    out += " }\n  }\n  acc = accs[0];";
    if (f.arg) out += " place = places[0];";
    return out + "\n";
  }

  void grouped() {
    const Fold& f = r_.fold;
    const std::string one = element("", "r"), end = finish();
    KernelSpec& spec = step_.spec;
    spec.locals.push_back({"shared_acc", f.held, "GROUP"});
    if (f.arg) spec.locals.push_back({"shared_place", TN_U32, "GROUP"});
    std::string& b = spec.body;
    // Groups beyond the last repeat it and store nothing: barriers are met by all.
    b = "  const tn_uint lid = TN_LID(x), last = n_kept * n_chunks - 1u;\n"
        "  const bool live = TN_GROUP_NUMBER <= last;\n  const tn_uint number = live ? TN_GROUP_NUMBER : last;\n"
        "  const tn_uint kept = number % n_kept, chunk_number = number / n_kept;\n";
    b += outer("kept");
    b += "  const tn_uint first = chunk_number * chunk, stop = first + chunk < n_gone ? first + chunk : n_gone;\n";
    b += declare(f, "") + "  " + reset(f, "") + "\n";
    b += "  for (tn_uint r = first + lid; r < stop; r += GROUP) {" + one + " }\n" + settle(f, "");
    b += "  shared_acc[lid] = acc;" + std::string(f.arg ? " shared_place[lid] = place;" : "") + "\n  TN_BARRIER();\n";
    b += "  for (tn_uint width = GROUP / 2; width > 0u; width >>= 1) {\n    if (lid < width) {\n";
    if (f.arg)
      b += "      if (tn_better(shared_acc[lid + width], shared_place[lid + width], shared_acc[lid], shared_place[lid])) {\n"
           "        shared_acc[lid] = shared_acc[lid + width]; shared_place[lid] = shared_place[lid + width];\n      }\n";
    else b += "      shared_acc[lid] = tn_join(shared_acc[lid], shared_acc[lid + width]);\n";
    b += "    }\n    TN_BARRIER();\n  }\n  if (live && lid == 0u) {\n    acc = shared_acc[0];" + std::string(f.arg ? " place = shared_place[0];" : "") + "\n" + end + "  }\n";
  }

  const Caps& caps_;
  const ReduceStep& r_;
  const Piece& piece_;
  uint32_t arg_first_;
  bool empty_;
  StepBuilder step_;
  std::vector<std::string> inputs_, outputs_;
};

}  // namespace

std::string join_function(const Fold& f) {
  const std::string t = register_type(f.held);
  std::string body;
  switch (f.monoid) {
    case TN_MONOID_SUM: body = arithmetic_body(f, " + "); break;
    case TN_MONOID_PROD: body = arithmetic_body(f, " * "); break;
    case TN_MONOID_MAX: body = extreme_body(f, true); break;
    case TN_MONOID_MIN: body = extreme_body(f, false); break;
    case TN_MONOID_AND: body = "  return a & b;\n"; break;
    default: body = "  return a | b;\n"; break;
  }
  return "TN_FN " + t + " tn_join(" + t + " a, " + t + " b) {\n" + body + "}\n";
}

Fold plain_fold(int64_t monoid, uint32_t value_dtype) {
  Fold f;
  f.value = static_cast<uint8_t>(value_dtype);
  f.monoid = plain_monoid(monoid, value_dtype);
  f.held = held_for(f.monoid, value_dtype, nullptr);
  return f;
}
Fold fold_of(int64_t monoid, uint32_t value_dtype, const Caps& caps) {
  Fold f;
  f.value = static_cast<uint8_t>(value_dtype);
  f.monoid = plain_monoid(monoid, value_dtype);
  f.held = held_for(f.monoid, value_dtype, &caps);
  f.arg = monoid == TN_MONOID_ARGMAX || monoid == TN_MONOID_ARGMIN;
  f.compensated = f.monoid == TN_MONOID_SUM && (f.held == TN_F32 || (f.held == TN_F64 && value_dtype == TN_F64));
  return f;
}
uint8_t result_dtype(const Fold& f) { return f.arg ? uint8_t{TN_I64} : f.value; }

tn_status reduce_step(const Caps& caps, const ReduceStep& r, const Piece& p, uint32_t arg_first, bool empty, Step* out, tn_diag* diag) {
  return Writer(caps, r, p, arg_first, empty).write(out, diag);
}

}  // namespace tenon::gpu
