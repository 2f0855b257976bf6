// Rectified sums over coalitions, by meeting in the middle: units of a network, knots of a piecewise linear calibration.
//
// The players of a sum are cut into two halves. Both have the sums of all their coalitions in ascending order, so that for each
// coalition of one half those of the other with which the sum is positive are a tail of its list, which only grows from one to the next.

#include <math.h>

#include "../common/kernel.h"
#include "../common/lanes.h"
#include "../common/numbers.h"

EXACTSHAP_BEGIN

namespace {

constexpr int64_t MOST = 30;       // players of a sum: 2^15 coalitions of a half
constexpr int64_t LATE = 64;       // coalitions whose weights are added up before they join a long sum
constexpr int64_t PADDED = 64;     // numbers of a row of weights: 31, and zeros for lanes that no coalition has

/// A coalition of one half: its sum and its players.
struct Subset {
  double sum;
  int64_t mask;
};

/// Set `list (2^n,)` to the coalitions of n players in ascending order of their sums; `other` is scratch of that size.
EXACTSHAP_INLINE Subset* sort_subsets(const double* steps, int64_t n, Subset* list, Subset* other) {
  list[0] = {0.0, 0};
  for (int64_t j = 0, size = 1; j < n; j++, size *= 2) {
    const double step = steps[j];
    const int64_t bit = int64_t(1) << j;
    int64_t without = 0, with = 0;
    for (int64_t k = 0; k < 2 * size; k++) {  // no branches: which list is next cannot be foreseen
      const int64_t a = smaller(without, size - 1), b = smaller(with, size - 1);
      const double left = list[a].sum, right = list[b].sum + step;
      const bool takes = with < size && (without >= size || right < left);
      other[k].sum = takes ? right : left;
      other[k].mask = takes ? list[b].mask | bit : list[a].mask;
      with += takes;
      without += !takes;
    }
    Subset* const swapped = list;
    list = other;
    other = swapped;
  }
  return list;
}

/// Set `out[L]` to sum_R w(|L| + |R|) max(0, shift + L + R) for the coalitions L of one half, R of the other.
///
/// `sums` are four rows of LANES numbers: by |L|, the weights of the R that have come so far, and the weights times their sums; then those
/// of the last few alone, so that small weights are not rounded to a long sum's unit one by one.
template <int LANES>
EXACTSHAP_APART void sweep(const Subset* own, int64_t n_own, const Subset* other, int64_t n_other, double shift, const double* weights,
                           double* sums, double* out) {
  constexpr int width = int(sizeof(Widest) / sizeof(double));
  double *const count = sums, *const total = sums + LANES, *const late_count = sums + 2 * LANES, *const late_total = sums + 3 * LANES;
  for (int i = 0; i < 4 * LANES; i++) sums[i] = 0.0;
  int64_t left = n_other;
  for (int64_t k = 0; k < n_own; k++) {
    const double reached = shift + own[k].sum;
    while (left > 0 && reached + other[left - 1].sum > 0.0) {
      left--;
      const double* const column = weights + __builtin_popcountll(uint64_t(other[left].mask));
      const double sum = other[left].sum;
      for (int i = 0; i < LANES; i += width) {
        Widest weight, counted, added;
        load(column + i, weight);
        load(late_count + i, counted);
        load(late_total + i, added);
        store(counted + weight, late_count + i);
        store(added + weight * sum, late_total + i);
      }
      if (left % LATE != 0) continue;
      for (int i = 0; i < 2 * LANES; i++) {
        sums[i] += late_count[i];
        late_count[i] = 0.0;
      }
    }
    const int64_t size = __builtin_popcountll(uint64_t(own[k].mask));
    out[own[k].mask] = reached * (count[size] + late_count[size]) + (total[size] + late_total[size]);
  }
}

void sweep_half(const Subset* own, int64_t n_own, const Subset* other, int64_t n_other, double shift, const double* weights, double* sums,
                double* out) {
  if (n_own < int64_t(1) << 8)
    sweep<8>(own, n_own, other, n_other, shift, weights, sums, out);
  else
    sweep<16>(own, n_own, other, n_other, shift, weights, sums, out);
}

/// Set `out[j]` to the sum of `table (2^n,)` over the coalitions with player j; the table is used up, its first number is the sum of all.
void sum_with_each(double* table, int64_t n, double* out) {
  for (int64_t j = n - 1; j >= 0; j--) {
    const int64_t half = int64_t(1) << j;
    double lane[8] = {};
    int64_t s = 0;
    for (; s + 8 <= half; s += 8)
      for (int i = 0; i < 8; i++) {
        lane[i] += table[half + s + i];
        table[s + i] += table[half + s + i];
      }
    double sum = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    for (; s < half; s++) {
      sum += table[half + s];
      table[s] += table[half + s];
    }
    out[j] = sum;
  }
}

struct Scratch {
  Subset *first, *second;          // two lists for each half
  double *table, *sums, *values;  // values of single players
};

/// Add the values of the players of one sum, for all its hinges, to `out (n_players, n_outputs)`; false where there are too many.
bool add_sum(const double* steps, const int64_t* members, int64_t n, In<double, 1> shifts, In<double, 2> c, In<double, 2> marginal,
             In<double, 2> joined, double mass, int64_t half, Scratch scratch, Out<double, 2> out) {
  const int64_t n_first = n / 2, n_second = n - n_first, n_outputs = c.size[1];
  const Subset *first = nullptr, *second = nullptr;
  double low = 0.0, high = 0.0;
  for (int64_t j = 0; j < n; j++) (steps[j] < 0.0 ? low : high) += steps[j];
  for (int64_t k = 0; k < shifts.size[0]; k++) {
    if (!(shifts[k] + high > 0.0)) continue;
    double* const values = scratch.values;
    if (shifts[k] + low >= 0.0) {
      for (int64_t j = 0; j < n; j++) values[j] = mass * steps[j];
    } else {
      if (n > MOST) return false;
      if (first == nullptr) {
        first = sort_subsets(steps, n_first, scratch.first, scratch.first + half);
        second = sort_subsets(steps + n_first, n_second, scratch.second, scratch.second + half);
      }
      const int64_t size_first = int64_t(1) << n_first, size_second = int64_t(1) << n_second;
      sweep_half(second, size_second, first, size_first, shifts[k], joined[n].data, scratch.sums, scratch.table);
      sum_with_each(scratch.table, n_second, values + n_first);
      sweep_half(first, size_first, second, size_second, shifts[k], joined[n].data, scratch.sums, scratch.table);
      sum_with_each(scratch.table, n_first, values);
      sweep_half(first, size_first, second, size_second, shifts[k], marginal[n].data, scratch.sums, scratch.table);
      double all = 0.0;
      for (int64_t s = 0; s < size_first; s++) all += scratch.table[s];
      for (int64_t j = 0; j < n; j++) values[j] -= all;
    }
    for (int64_t j = 0; j < n; j++)
      for (int64_t o = 0; o < n_outputs; o++) out[members[j]][o] += c[k][o] * values[j];
  }
  return true;
}

/// Add the values of single players in   v_o(S) = sum_i sum_{k of i} c_ko max(0, shift_k + sum_{j in S} steps_ij)   to `out (n_players, n_outputs)`.
///
/// The hinges of sum i are starts_i to starts_(i + 1) - 1. Players that a sum does not move are left out of it: `marginal (n_players + 1, 64)` are
/// the weights p(s) of a marginal to s of n - 1 others for n players, `joined` p(s - 1) + p(s), both with zeros behind; `mass` is
/// their sum over all coalitions. Returns Status::fault where more than 30 players move a sum across a hinge.
Status fill_hinges(In<double, 2> steps, In<int64_t, 1> starts, In<double, 1> shifts, In<double, 2> c, In<double, 2> marginal,
                   In<double, 2> joined, double mass, Out<double, 2> out, Context& context) {
  const int64_t n_sums = steps.size[0], n_players = steps.size[1], n_hinges = shifts.size[0];
  EXACTSHAP_REQUIRE(starts.size[0] == n_sums + 1 && c.size[0] == n_hinges && out.size[0] == n_players && out.size[1] == c.size[1]);
  EXACTSHAP_REQUIRE(marginal.size[0] >= n_players + 1 && marginal.size[1] == PADDED);
  EXACTSHAP_REQUIRE(joined.size[0] >= n_players + 1 && joined.size[1] == PADDED);
  EXACTSHAP_REQUIRE(starts[0] >= 0 && starts[n_sums] <= n_hinges);
  for (int64_t i = 0; i < n_sums; i++) EXACTSHAP_REQUIRE(starts[i] <= starts[i + 1]);
  const int64_t half = int64_t(1) << (smaller(n_players, MOST) + 1) / 2;
  auto lists = context.empty<Subset>(4, half);
  auto table = context.empty<double>(half), sums = context.empty<double>(64), values = context.empty<double>(n_players);
  auto moving = context.empty<double>(n_players);
  auto members = context.empty<int64_t>(n_players);
  if (context.failed()) return Status::no_memory;
  const Scratch scratch = {lists[0].data, lists[2].data, table.data, sums.data, values.data};
  for (int64_t i = 0; i < n_sums; i++) {
    if (context.interrupted()) return Status::interrupted;
    const double* const step = steps[i].data;
    int64_t n = 0;
    for (int64_t j = 0; j < n_players; j++) {
      if (step[j] == 0.0) continue;
      moving[n] = step[j];
      members[n++] = j;
    }
    const int64_t from = starts[i], to = starts[i + 1];
    const bool fits = add_sum(moving.data, members.data, n, shifts.slice(from, to), c.slice(from, to), marginal, joined, mass, half, scratch, out);
    if (!fits) return Status::fault;
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(product, fill_hinges, fill_hinges)
