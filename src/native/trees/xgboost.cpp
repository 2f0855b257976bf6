// XGBoost's trees out of the bytes of UBJSON in one pass, where nothing about them is unusual: one output for each tree, splits by
// number, the entries of all trees in the same order. Whatever is not so is left to the way that reads one entry after another,
// and says what is wrong.

#include "ubj.h"

EXACTSHAP_BEGIN

namespace {

enum Entry { LEFT, RIGHT, FEATURE, THRESHOLD, COVER, MISSING, KIND, SETS, PARAMETERS, N_ENTRIES };
constexpr const char* NAMES[N_ENTRIES] = {"left_children", "right_children", "split_indices", "split_conditions", "sum_hessian",
                                          "default_left",  "split_type",     "categories_nodes", "tree_param"};

/// The nodes of all trees behind one another: `sizes (n_trees,)` of each, the others as RawForest has them.
struct Columns {
  Out<int64_t, 1> sizes, left, right, feature;
  Out<double, 1> threshold, value, cover;
  Out<int8_t, 1> missing;
  EXACTSHAP_FIELDS(sizes, left, right, feature, threshold, value, cover, missing)

  bool fit(int64_t n_trees) const {
    const int64_t n = left.size[0];
    return sizes.size[0] == n_trees && right.size[0] == n && feature.size[0] == n && threshold.size[0] == n && value.size[0] == n &&
           cover.size[0] == n && missing.size[0] == n;
  }
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
    out.value[q] = weight * out.threshold[q];
    out.missing[q] = int8_t(missing[i]);
    out.right[q] = is_leaf ? -1 : out.right[q];
    is_plain &= missing[i] <= 1 && (kind[i] == 0 || (kind[i] == 1 && is_leaf));
  }
  return is_plain ? n : -1;
}

/// Read the trees whose rows are `objects (n_trees,)`, with their values multiplied by `weights (n_trees,)`, as far as there is room.
/// Gives the number of their nodes, or -1 where one of them is not plain.
Status read_trees(Tape tape, In<int64_t, 1> objects, In<double, 1> weights, Columns out, int64_t& n_nodes, Context& context) {
  const int64_t n_trees = objects.size[0];
  n_nodes = -1;
  EXACTSHAP_REQUIRE(tape.fit() && weights.size[0] == n_trees && out.fit(n_trees));
  int64_t keys[MAX_KEYS], rows[MAX_KEYS], places[N_ENTRIES], entries[N_ENTRIES], end = 0;
  const int64_t n_keys = n_trees > 0 ? list_children(tape, objects[0], MAX_KEYS, keys) : 0;
  for (int entry = 0; entry < N_ENTRIES && n_trees > 0; entry++)
    if ((places[entry] = place_of(tape, keys, n_keys, NAMES[entry])) < 0) return Status::done;
  for (int64_t k = 0; k < n_trees; k++) {
    if (k % 64 == 0 && context.interrupted()) return Status::interrupted;
    if (list_children(tape, objects[k], MAX_KEYS, rows) != n_keys) return Status::done;
    for (int64_t i = 0; i < n_keys && k > 0; i++)
      if (!same_key(tape, rows[i], keys[i])) return Status::done;
    for (int entry = 0; entry < N_ENTRIES; entry++) entries[entry] = rows[places[entry]];
    out.sizes[k] = copy_tree(tape, entries, weights[k], out, end);
    if (out.sizes[k] < 0) return Status::done;
    end += out.sizes[k];
  }
  n_nodes = end;
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(trees, read_xgboost_trees, read_trees)
