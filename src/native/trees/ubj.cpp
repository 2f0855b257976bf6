// Scan of Universal Binary JSON: where each value lies, without making any.
//
// Bytes are compared with the letters of the format: `{ } [ ] $ #` and one letter for each type.

#include "ubj.h"

EXACTSHAP_BEGIN

namespace {

constexpr int64_t MAX_NESTING = 64;

/// One row for each value. `marker` is the type's letter, plus TYPED for arrays of numbers; `key_start` and `key_length` (-1 outside
/// objects) tell the key; `start` where the bytes of the value begin; `count` numbers, bytes of a text, or children; `after` the
/// row that follows the value and all that is in it.
struct Rows {
  Out<uint8_t, 1> marker;
  Out<int64_t, 1> key_start, key_length, start, count, after;
};

class Scan {
 public:
  int64_t n = 0, position = 0;  // rows so far; the next byte, or that of a fault

  Scan(In<uint8_t, 1> data, const Rows& rows) : data_(data), rows_(rows), size_(data.size[0]), room_(rows.marker.size[0]) {}

  /// Read one value after the other until the outermost one ends (true) or there is a fault (false).
  bool run(Context& context, bool& interrupted) {
    while (!(close() && n > 0)) {
      interrupted = (n & 4095) == 0 && context.interrupted();
      if (interrupted || !read_key() || !read_value()) return false;
      n++;
    }
    return position == size_;
  }

 private:
  struct Container {
    int64_t row, left, children;  // left: children still to come, -1 if a letter closes it
    uint8_t closing;
  };

  In<uint8_t, 1> data_;
  Rows rows_;
  int64_t size_, room_, depth_ = -1;  // room_: rows that are written, those beyond are counted
  Container open_[MAX_NESTING];
  int64_t key_start_ = 0, key_length_ = -1, kind_ = 0, first_ = 0, count_ = 1;

  bool next_is(uint8_t letter) const { return position < size_ && data_[position] == letter; }

  /// Leave all containers that end here; say whether none is left.
  bool close() {
    for (; depth_ >= 0; depth_--) {
      const Container& inner = open_[depth_];
      if (inner.left < 0 && next_is(inner.closing))
        position++;
      else if (inner.left != 0)
        return false;
      if (inner.row < room_) {
        rows_.after[inner.row] = n;
        rows_.count[inner.row] = inner.children;
      }
    }
    return true;
  }

  /// Read the length written at `at`, not beyond the end, and where it ends.
  bool read_length(int64_t at, int64_t& length, int64_t& end) const {
    if (at >= size_) return false;
    const uint8_t type = data_[at];
    const int64_t width = width_of(type);
    end = at + 1 + width;
    if (width == 0 || type == 'd' || type == 'D' || end > size_) return false;
    const uint8_t* const bytes = data_.data + at + 1;
    uint64_t number = width == 8 ? number_at<uint64_t, uint64_t>(bytes) : 0;  // those that XGBoost writes
    for (int64_t b = 0; b < width && width < 8; b++) number = number << 8 | bytes[b];
    if (type != 'U' && number >> (8 * width - 1) != 0) return false;  // negative
    length = int64_t(number);
    return length <= size_ - end;
  }

  bool read_key() {
    key_start_ = 0, key_length_ = -1;
    if (depth_ < 0 || open_[depth_].closing != '}') return true;
    if (!read_length(position, key_length_, key_start_)) return false;
    position = key_start_ + key_length_;
    return true;
  }

  /// Read one value: all of it, or the head of a container.
  bool read_value() {
    if (position >= size_) return false;
    kind_ = data_[position++];
    first_ = position, count_ = 1;
    if (kind_ == '[' && next_is('$')) {
      if (!read_typed_array()) return false;
    } else if (kind_ == 'S') {
      if (!read_length(position, count_, first_)) return false;
      position = first_ + count_;
    } else if (kind_ == 'C' || width_of(kind_) > 0) {
      position += kind_ == 'C' ? 1 : width_of(kind_);
      if (position > size_) return false;
    } else if (kind_ != '{' && kind_ != '[' && kind_ != 'T' && kind_ != 'F' && kind_ != 'Z') {
      return false;
    }
    note();
    return (kind_ != '{' && kind_ != '[') || open();
  }

  bool read_typed_array() {
    if (position + 2 >= size_ || data_[position + 2] != '#') return false;
    const int64_t type = data_[position + 1], width = width_of(type);
    if (width == 0 || !read_length(position + 3, count_, first_) || count_ > (size_ - first_) / width) return false;
    kind_ = TYPED + type;
    position = first_ + count_ * width;
    return true;
  }

  /// Write the row of the value, and count it in its container.
  void note() {
    if (depth_ >= 0) {
      open_[depth_].children++;
      if (open_[depth_].left > 0) open_[depth_].left--;
    }
    if (n >= room_) return;
    rows_.marker[n] = uint8_t(kind_);
    rows_.key_start[n] = key_start_;
    rows_.key_length[n] = key_length_;
    rows_.start[n] = first_;
    rows_.count[n] = count_;
    rows_.after[n] = n + 1;
  }

  bool open() {
    if (depth_ + 1 >= MAX_NESTING || next_is('$')) return false;
    Container& inner = open_[++depth_];
    inner = Container{n, -1, 0, uint8_t(kind_ == '{' ? '}' : ']')};
    return !next_is('#') || read_length(position + 1, inner.left, position);
  }
};

/// Write one row for each value, in the order of the file, as far as there is room. Gives the number of rows, which may be more
/// than were written, and the position of a fault or -1.
Status scan(In<uint8_t, 1> data, Out<uint8_t, 1> marker, Out<int64_t, 1> key_start, Out<int64_t, 1> key_length,
            Out<int64_t, 1> start, Out<int64_t, 1> count, Out<int64_t, 1> after, int64_t& n_rows, int64_t& fault, Context& context) {
  n_rows = 0, fault = -1;
  const int64_t n = marker.size[0];
  EXACTSHAP_REQUIRE(key_start.size[0] == n && key_length.size[0] == n && start.size[0] == n);
  EXACTSHAP_REQUIRE(count.size[0] == n && after.size[0] == n);
  Scan scanned(data, Rows{marker, key_start, key_length, start, count, after});
  bool interrupted = false;
  if (!scanned.run(context, interrupted)) fault = scanned.position;
  n_rows = scanned.n;
  return interrupted ? Status::interrupted : Status::done;
}

/// Write the rows of the children of an array to `out (n,)`. Gives whether they are as many, and objects all.
Status list_objects(Tape tape, int64_t row, Out<int64_t, 1> out, int64_t& are_objects) {
  EXACTSHAP_REQUIRE(tape.fit());
  bool alike = list_children(tape, row, out.size[0], out.data) == out.size[0];
  for (int64_t o = 0; o < out.size[0] && alike; o++) alike = tape.marker[out[o]] == '{';
  are_objects = alike ? 1 : 0;
  return Status::done;
}

/// Write to `out (n_keys, n_objects)` the row of the child of each object whose key is that of the first object's k-th child: -1 if
/// there is none, -2 if there are two, which count for the first of the same key.
///
/// `markers (n_keys,)` get the marker that all these children share, 0 if they share none, `totals (n_keys,)` the sum of their
/// counts. Gives the first object with a key that the first one lacks, or -1.
Status fill_members(Tape tape, In<int64_t, 1> objects, Out<int64_t, 2> out, Out<uint8_t, 1> markers, Out<int64_t, 1> totals,
                    int64_t& other) {
  other = -1;
  const int64_t n_keys = out.size[0], n_objects = objects.size[0];
  EXACTSHAP_REQUIRE(tape.fit() && n_keys <= MAX_KEYS && out.size[1] == n_objects);
  EXACTSHAP_REQUIRE(markers.size[0] == n_keys && totals.size[0] == n_keys);
  int64_t keys[MAX_KEYS], rows[MAX_KEYS];
  if (n_objects > 0 && list_children(tape, objects[0], MAX_KEYS, keys) != n_keys) return Status::fault;
  out.fill(-1);
  for (int64_t o = 0; o < n_objects; o++) {
    const int64_t n = list_children(tape, objects[o], MAX_KEYS, rows);
    if (n < 0) return Status::fault;
    for (int64_t i = 0; i < n; i++) {
      int64_t k = o > 0 && i < n_keys && same_key(tape, rows[i], keys[i]) ? i : 0;  // most have them in the same order
      while (k < n_keys && !same_key(tape, rows[i], keys[k])) k++;
      if (k < n_keys)
        out[k][o] = out[k][o] == -1 ? rows[i] : -2;
      else if (other < 0)
        other = o;
    }
  }
  for (int64_t k = 0; k < n_keys; k++) {
    int64_t shared = 0;
    totals[k] = 0;
    for (int64_t o = 0; o < n_objects; o++) {
      const int64_t row = out[k][o], kind = row < 0 ? 0 : tape.marker[row];
      shared = o == 0 || kind == shared ? kind : 0;
      totals[k] += row < 0 ? 0 : tape.size[row];
    }
    markers[k] = uint8_t(shared);
  }
  return Status::done;
}

/// Copy the numbers of typed arrays of one type, those of `rows`, behind one another to `out`, which can hold all of that type.
template <class T>
Status copy_numbers(Tape tape, In<int64_t, 1> rows, Out<T, 1> out) {
  EXACTSHAP_REQUIRE(tape.fit());
  int64_t end = 0;
  for (int64_t p = 0; p < rows.size[0]; p++) {
    const int64_t row = rows[p];
    if (row < 0 || row >= tape.after.size[0]) return Status::fault;
    const int64_t type = int64_t(tape.marker[row]) - TYPED, width = width_of(type), n = tape.size[row], start = tape.start[row];
    if (width == 0 || n < 0 || n > out.size[0] - end || start < 0 || start > tape.data.size[0]) return Status::fault;
    if (n > (tape.data.size[0] - start) / width) return Status::fault;
    const uint8_t* const bytes = tape.data.data + start;
    T* const to = out.data + end;
    switch (type) {
      case 'i': copy_piece<int8_t, uint8_t>(bytes, n, to); break;
      case 'U': copy_piece<uint8_t, uint8_t>(bytes, n, to); break;
      case 'I': copy_piece<int16_t, uint16_t>(bytes, n, to); break;
      case 'l': copy_piece<int32_t, uint32_t>(bytes, n, to); break;
      case 'L': copy_piece<int64_t, uint64_t>(bytes, n, to); break;
      case 'd': copy_piece<float, uint32_t>(bytes, n, to); break;
      default: copy_piece<double, uint64_t>(bytes, n, to); break;
    }
    end += n;
  }
  return end == out.size[0] ? Status::done : Status::fault;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(trees, scan_ubj, scan)
EXACTSHAP_KERNEL(trees, list_ubj_objects, list_objects)
EXACTSHAP_KERNEL(trees, fill_ubj_members, fill_members)
EXACTSHAP_KERNEL(trees, copy_ubj_numbers, copy_numbers<int64_t>, copy_numbers<float>, copy_numbers<double>)
