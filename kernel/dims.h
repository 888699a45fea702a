// kernel/dims.h - the two kinds of tn_dims that shape rules run with: plain numbers, and expressions over symbols.
//
//   ConcreteDims numbers;                    tn_dims d = numbers.table();
//   status = def->infer(ctx, op, &d, out, diag);   if (numbers.status() != TN_OK) ...   // overflow sticks
//
//   SymbolicDims symbols;                    int64_t n = symbols.base();                // TN_SYM(0), a size of 2 or more
//   tn_dims d = symbols.table();             int64_t m = d.calc(d.ctx, TN_DIM_MUL, n, 4);
//   symbols.evaluate(m, {{7}}, &value);      // value == 28
//
// table() borrows the object: it must outlive the table. One thread at a time per object.
#pragma once
#include <tenon/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

namespace tenon::kernel {

__extension__ typedef __int128 Wide;  // bounds and sums that may pass 64 bits on the way

// a op b on numbers; nullopt on overflow and division by zero. Division rounds down, the remainder has the divisor's sign.
std::optional<int64_t> calc_numbers(uint32_t dim_op, int64_t a, int64_t b);
bool holds(uint32_t relation, int64_t a, int64_t b);  // DIVIDES: b is a multiple of a; 0 divides only 0

// Numbers only. `fresh` gives symbols that stand for sizes known after running; arithmetic on one is an error.
class ConcreteDims {
 public:
  tn_dims table();
  // TN_E_SHAPE once any calculation overflowed or divided by zero; fills diag (may be NULL) then.
  tn_status status(tn_diag* diag = nullptr) const;
  void reset() { failed_ = false; }

 private:
  static int64_t calc(void* self, uint32_t dim_op, int64_t a, int64_t b);
  static tn_status require(void* self, uint32_t relation, int64_t a, int64_t b, tn_diag*);
  static int64_t fresh(void* self, int64_t lo, int64_t hi);
  bool failed_ = false;
  uint32_t op_ = 0;
  int64_t a_ = 0, b_ = 0;  // of the first failure
  int64_t n_fresh_ = 0;
};

// A relation that was not decided when the rule ran: true for every shape the plan may serve.
struct DimGuard {
  uint32_t relation;
  int64_t a, b;
  bool operator==(const DimGuard&) const = default;
};

// Expressions over symbols. Sums of products are kept in one normal form (so that equal polynomials are equal symbols);
// quotients, remainders, minima and maxima that cannot be simplified are atoms of their own.
class SymbolicDims {
 public:
  // The next base symbol, a number from lo to hi. The k-th one made (fresh ones included) takes values[k] in evaluate.
  int64_t base(int64_t lo = 2, int64_t hi = INT64_MAX);
  tn_dims table();

  tn_status status(tn_diag* diag = nullptr) const;
  // Relations found undecided, without repeats.
  const std::vector<DimGuard>& guards() const { return guards_; }
  // Demands that every dim of `t` that is an expression be 2 or more, as symbols promise. Sizes known only after
  // running are exempt. TN_E_SHAPE when it is decided that one is smaller.
  tn_status guard_sizes(const tn_type& t, tn_diag* diag);

  // The number a dim or stride stands for. False when a value is missing, or on overflow or division by zero.
  bool evaluate(int64_t dim, std::span<const int64_t> values, int64_t* out) const;
  // All dims and strides of a type; false as evaluate.
  bool substitute(const tn_type& t, std::span<const int64_t> values, tn_type* out) const;
  bool guards_hold(std::span<const int64_t> values) const;

  int64_t calc(uint32_t dim_op, int64_t a, int64_t b);
  tn_status require(uint32_t relation, int64_t a, int64_t b, tn_diag* diag);
  int64_t fresh(int64_t lo, int64_t hi);

 private:
  using Atoms = std::vector<uint32_t>;     // sorted symbol numbers, repeated for powers
  using Poly = std::map<Atoms, int64_t>;   // product -> factor, factors nonzero; the empty product is the number
  struct Range { Wide lo, hi; };
  struct Node {
    enum class Kind { Base, Sum, Atom } kind;
    uint32_t ordinal = 0, dim_op = 0;      // Base: which value; Atom: dim_op over a and b
    int64_t a = 0, b = 0;
    Poly poly;                             // Sum
    Range range{};
    bool after_running = false;            // depends on a fresh size
  };

  int64_t add_node(Node node);
  int64_t intern(Poly poly);
  int64_t atom(uint32_t dim_op, int64_t a, int64_t b);
  int64_t divide(int64_t a, int64_t b);
  int64_t modulo(int64_t a, int64_t b);
  int64_t extreme(uint32_t dim_op, int64_t a, int64_t b);
  Poly poly_of(int64_t dim) const;
  const Node& node(int64_t dim) const { return nodes_[static_cast<size_t>(dim - INT64_MIN)]; }
  bool known(int64_t dim) const { return static_cast<size_t>(dim - INT64_MIN) < nodes_.size(); }
  bool depends_on_fresh(int64_t dim) const { return TN_IS_SYM(dim) && node(dim).after_running; }
  std::optional<Poly> combine(const Poly& a, const Poly& b, int64_t sign) const;
  std::optional<Poly> multiply(const Poly& a, const Poly& b) const;
  bool split(const Poly& a, const Poly& b, Poly* quotient, Poly* rest) const;
  Range range_of(int64_t dim) const;
  Range range_of(const Poly& p) const;
  std::optional<bool> decide(uint32_t relation, int64_t a, int64_t b) const;
  int64_t fail(uint32_t dim_op, int64_t a, int64_t b);

  std::vector<Node> nodes_;
  std::map<Poly, int64_t> sums_;
  std::map<std::tuple<uint32_t, int64_t, int64_t>, int64_t> atoms_;
  std::vector<DimGuard> guards_;
  uint32_t n_base_ = 0;
  bool failed_ = false;
  uint32_t op_ = 0;
  int64_t a_ = 0, b_ = 0;
};

}  // namespace tenon::kernel
