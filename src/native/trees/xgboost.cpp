// XGBoost's trees out of the bytes of UBJSON in one pass, where nothing about them is unusual: one output, splits by number, the
// entries of all trees in the same order. Whatever is not so is left to the way that reads one entry after another, and says what
// is wrong.

#include "layout.h"
#include "ubj.h"

EXACTSHAP_BEGIN

namespace {

enum Entry { LEFT, RIGHT, FEATURE, THRESHOLD, COVER, MISSING, KIND, SETS, PARAMETERS, N_ENTRIES };
constexpr const char* NAMES[N_ENTRIES] = {"left_children", "right_children", "split_indices", "split_conditions", "sum_hessian",
                                          "default_left",  "split_type",     "categories_nodes", "tree_param"};

/// Nodes of trees behind one another, as many as there is room for.
struct Columns {
  Array<int64_t, 1> left, right, feature;
  Array<double, 1> threshold, cover;
  Array<int8_t, 1> missing;
  Array<double, 2> value;  // (n_nodes, 1)
};

/// The only one of `n` rows whose key is `name`; -1 if there is none or another.
int64_t place_of(const Tape& tape, const int64_t* rows, int64_t n, const char* name) {
  const int64_t length = int64_t(strlen(name));
  int64_t place = -1;
  for (int64_t i = 0; i < n; i++) {
    const int64_t start = tape.key_start[rows[i]];
    if (tape.key_length[rows[i]] != length || start < 0 || start > tape.data.size[0] - length) continue;
    if (memcmp(tape.data.data + start, name, size_t(length)) != 0) continue;
    if (place >= 0) return -1;
    place = i;
  }
  return place;
}

/// The bytes of an array of `n` numbers of a type; null if a row holds anything else.
EXACTSHAP_INLINE const uint8_t* numbers_of(const Tape& tape, int64_t row, int64_t type, int64_t n) {
  const int64_t start = tape.start[row], size = tape.data.size[0];
  const bool fits = tape.marker[row] == TYPED + type && tape.size[row] == n && n >= 0 && start >= 0 && start <= size;
  return fits && n <= (size - start) / width_of(type) ? tape.data.data + start : nullptr;
}

/// Whether a tree's leaves hold one number each, by its parameters.
bool has_plain_leaves(const Tape& tape, int64_t parameters) {
  int64_t rows[MAX_KEYS];
  const int64_t n = tape.marker[parameters] == '{' ? list_children(tape, parameters, MAX_KEYS, rows) : 0;
  const int64_t place = place_of(tape, rows, n, "size_leaf_vector"), row = place < 0 ? 0 : rows[place], start = tape.start[row];
  if (place < 0 || tape.marker[row] != 'S' || tape.size[row] != 1 || start < 0 || start >= tape.data.size[0]) return false;
  return tape.data[start] == '0' || tape.data[start] == '1';
}

/// Copy the nodes of a tree behind the `first` ones that are there, `weight` times their values; return how many they are, or -1 if
/// they are not plain.
int64_t copy_tree(const Tape& tape, const int64_t* rows, double weight, const Columns& out, int64_t first) {
  const int64_t n = tape.size[rows[LEFT]];
  const auto numbers = [&](Entry entry, int64_t type) { return numbers_of(tape, rows[entry], type, n); };
  const uint8_t *const left = numbers(LEFT, 'l'), *const right = numbers(RIGHT, 'l'), *const feature = numbers(FEATURE, 'l');
  const uint8_t *const threshold = numbers(THRESHOLD, 'd'), *const cover = numbers(COVER, 'd');
  const uint8_t *const missing = numbers(MISSING, 'U'), *const kind = numbers(KIND, 'U');
  if (!left || !right || !feature || !threshold || !cover || !missing || !kind || n > out.left.size[0] - first) return -1;
  if (numbers_of(tape, rows[SETS], 'l', 0) == nullptr || !has_plain_leaves(tape, rows[PARAMETERS])) return -1;
  copy_piece<int32_t, uint32_t>(left, n, out.left.data + first);
  copy_piece<int32_t, uint32_t>(right, n, out.right.data + first);
  copy_piece<int32_t, uint32_t>(feature, n, out.feature.data + first);
  copy_piece<float, uint32_t>(threshold, n, out.threshold.data + first);
  copy_piece<float, uint32_t>(cover, n, out.cover.data + first);
  bool is_plain = true;
  for (int64_t i = 0; i < n; i++) {
    const int64_t q = first + i;
    const bool is_leaf = out.left[q] == -1;
    out.value[q][0] = weight * out.threshold[q];
    out.missing[q] = int8_t(missing[i]);
    out.right[q] = is_leaf ? -1 : out.right[q];
    is_plain &= missing[i] <= 1 && (kind[i] == 0 || (kind[i] == 1 && is_leaf));
  }
  return is_plain ? n : -1;
}

/// Find the entries of each tree of `objects` and copy its nodes behind those of the trees before, `offset (n_trees + 1,)`. False where
/// a tree is not plain.
bool copy_trees(const Tape& tape, In<int64_t, 1> objects, In<double, 1> weights, const Columns& out, Array<int64_t, 1> offset) {
  int64_t keys[MAX_KEYS], rows[MAX_KEYS], places[N_ENTRIES], entries[N_ENTRIES];
  const int64_t n_trees = objects.size[0], n_keys = n_trees > 0 ? list_children(tape, objects[0], MAX_KEYS, keys) : -1;
  for (int entry = 0; entry < N_ENTRIES; entry++)
    if ((places[entry] = place_of(tape, keys, n_keys, NAMES[entry])) < 0) return false;
  offset[0] = 0;
  for (int64_t k = 0; k < n_trees; k++) {
    if (list_children(tape, objects[k], MAX_KEYS, rows) != n_keys) return false;
    for (int64_t i = 0; i < n_keys && k > 0; i++)
      if (!same_key(tape, rows[i], keys[i])) return false;
    for (int entry = 0; entry < N_ENTRIES; entry++) entries[entry] = rows[places[entry]];
    const int64_t n = copy_tree(tape, entries, weights[k], out, offset[k]);
    if (n <= 0) return false;
    offset[k + 1] = offset[k] + n;
  }
  return true;
}

/// Read the trees whose rows are `objects (n_trees,)`, with their values multiplied by `weights (n_trees,)`, and lay them out in `laid`,
/// which has room for all nodes. Gives how many nodes their roots reach, or -1 where one of them is not plain, or wrong.
Status read_trees(Tape tape, In<int64_t, 1> objects, In<double, 1> weights, int64_t n_features, int64_t max_depth, Laid laid,
                  int64_t& n_reached, Context& context) {
  const int64_t n_trees = objects.size[0], room = laid.left.size[0];
  n_reached = -1;
  EXACTSHAP_REQUIRE(tape.fit() && weights.size[0] == n_trees && laid.have_room(room) && laid.value.size[1] == 1);
  EXACTSHAP_REQUIRE(laid.tree_start.size[0] == n_trees + 1 && room <= INT32_MAX);
  const auto whole = [&] { return context.empty<int64_t>(room); };
  const auto real = [&] { return context.empty<double>(room); };
  const Columns nodes{whole(), whole(), whole(), real(), real(), context.empty<int8_t>(room), context.empty<double>(room, int64_t(1))};
  const auto offset = context.empty<int64_t>(n_trees + 1);
  if (context.failed()) return Status::no_memory;
  if (!copy_trees(tape, objects, weights, nodes, offset)) return Status::done;
  const int64_t n = offset[n_trees];
  const auto none = context.zeros<bool>(n), seen = context.zeros<bool>(n);
  if (context.failed()) return Status::no_memory;
  const Stored forest{offset, offset.slice(0, n_trees), nodes.feature.slice(0, n), nodes.left.slice(0, n), nodes.right.slice(0, n),
                      nodes.threshold.slice(0, n), nodes.cover.slice(0, n), nodes.missing.slice(0, n), none, nodes.value.slice(0, n)};
  const Laid part{laid.tree_start, laid.order.slice(0, n), laid.feature.slice(0, n), laid.left.slice(0, n), laid.right.slice(0, n),
                  laid.threshold.slice(0, n), laid.cover.slice(0, n), laid.missing.slice(0, n), laid.zero_is_missing.slice(0, n),
                  laid.value.slice(0, n)};
  EXACTSHAP_REQUIRE(forest.fit() && part.fit(forest));
  int64_t reached;
  if (check_and_lay_out(forest, part, n_features, max_depth, seen, reached).fault == 0) n_reached = reached;
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(trees, read_xgboost_trees, read_trees)
