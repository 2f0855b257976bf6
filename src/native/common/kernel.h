// EXACTSHAP_KERNEL makes a C++ function callable from Python. The function's own types are the only declaration: they are
// written out as text, from which Python knows what to pass, and every array is held against them before the function runs.
//
//   parameter                         Python passes                       text
//   In<T, N>, Out<T, N>               an array (read only, written)       in:f8:2, out:f8:2
//   int64_t, double, bool             a number                            int, real, int
//   a struct with EXACTSHAP_FIELDS    a NamedTuple of arrays and numbers  {left=in:i4:1,depth=int}
//   int64_t&, double&                 nothing: it is returned             gives:int, gives:real
//   Context&                          nothing: scratch and interruption
#pragma once

#include "complex.h"
#include "context.h"

EXACTSHAP_BEGIN

/// NumPy's `__array_struct__` (its array interface for C): where an array lies and what it holds.
struct Interface {
  int two, n_dimensions;
  char kind;
  int item_size, flags;
  intptr_t *shape, *strides;
  void *data, *description;
};

union Slot {
  int64_t integer;
  double real;
  const Interface* array;
  const Slot* fields;
};

/// Reads arguments one after the other; remembers the first that does not fit (fields count like arguments).
struct Reader {
  const Slot* slot;
  Slot* result;
  int64_t position;
  int64_t misfit;

  /// Apart: inlined for every array, it took longer to compile than many kernels.
  EXACTSHAP_APART bool fits(const Interface* array, char kind, int item_size, int n_dimensions, bool writes) {
    const int contiguous = 0x1, aligned = 0x100, native = 0x200, writeable = 0x400;
    const int needed = contiguous | aligned | native | (writes ? writeable : 0);
    const bool fit = array->two == 2 && array->n_dimensions == n_dimensions && array->kind == kind &&
                     array->item_size == item_size && (array->flags & needed) == needed;
    if (!fit && misfit < 0) misfit = position;
    position++;
    return fit;
  }
};

// What runs once for each kernel. Inlined for every field of every struct it took a third of the time of compiling.
#define EXACTSHAP_COLD __attribute__((noinline, cold))

/// Text that grows up to the end of a buffer.
struct Text {
  char* buffer;
  int64_t size, length;

  EXACTSHAP_COLD void add(const char* s) {
    for (; *s != 0; s++) add(*s);
  }
  EXACTSHAP_COLD void add(char letter) {
    if (length + 1 < size) buffer[length] = letter, buffer[length + 1] = 0;
    length++;
  }
  EXACTSHAP_COLD void add_array(bool writes, char kind, int64_t item_size, int64_t n_dimensions) {
    add(writes ? "out:" : "in:");
    add(kind);
    add_number(item_size);
    add(':');
    add_number(n_dimensions);
  }
  EXACTSHAP_COLD void add_number(int64_t n) {
    if (n >= 10) add_number(n / 10);
    add(char('0' + n % 10));
  }
  /// The first of "left, right, ..."; returns what follows it.
  EXACTSHAP_COLD const char* add_first(const char* names) {
    while (*names == ' ' || *names == ',') names++;
    for (; *names != 0 && *names != ','; names++) add(*names);
    return names;
  }
};

template <class T> struct Kind;
template <> struct Kind<double> { static constexpr char letter = 'f'; };
template <> struct Kind<float> { static constexpr char letter = 'f'; };
template <> struct Kind<Complex> { static constexpr char letter = 'c'; };
template <> struct Kind<bool> { static constexpr char letter = 'b'; };
template <> struct Kind<int8_t> { static constexpr char letter = 'i'; };
template <> struct Kind<int16_t> { static constexpr char letter = 'i'; };
template <> struct Kind<int32_t> { static constexpr char letter = 'i'; };
template <> struct Kind<int64_t> { static constexpr char letter = 'i'; };
template <> struct Kind<uint8_t> { static constexpr char letter = 'u'; };
template <> struct Kind<uint16_t> { static constexpr char letter = 'u'; };
template <> struct Kind<uint32_t> { static constexpr char letter = 'u'; };
template <> struct Kind<uint64_t> { static constexpr char letter = 'u'; };

template <class T> struct Bare { using Type = T; static constexpr bool writes = true; };
template <class T> struct Bare<const T> { using Type = T; static constexpr bool writes = false; };

/// How one type of parameter is described, and read from its slot. The general case is a struct with EXACTSHAP_FIELDS.
template <class P>
struct Parameter {
  EXACTSHAP_COLD static void describe(Text& text) {
    P none{};
    text.add("{");
    Describer describer{text, P::field_names()};
    none.each_field(describer);
    text.add("}");
  }
  EXACTSHAP_APART static P read(Reader& reader) {
    P out{};
    Reader inner{(reader.slot++)->fields, nullptr, reader.position, reader.misfit};
    FieldReader fields{inner};
    out.each_field(fields);
    reader.position = inner.position;
    reader.misfit = inner.misfit;
    return out;
  }

 private:
  struct Describer {
    Text& text;
    const char* names;  // "left, right, ..."
    template <class... F>
    void operator()(F&... fields) { (one(fields), ...); }
    template <class F>
    void one(F&) {
      names = text.add_first(names);
      text.add("=");
      Parameter<F>::describe(text);
      if (*names == ',') text.add(",");
    }
  };
  struct FieldReader {
    Reader& reader;
    template <class... F>
    void operator()(F&... fields) { ((fields = Parameter<F>::read(reader)), ...); }
  };
};

template <class T, int N>
struct Parameter<Array<T, N>> {
  using Type = typename Bare<T>::Type;

  static void describe(Text& text) { text.add_array(Bare<T>::writes, Kind<Type>::letter, int64_t(sizeof(Type)), N); }
  static Array<T, N> read(Reader& reader) {
    const Interface* array = (reader.slot++)->array;
    Array<T, N> out{};
    if (reader.fits(array, Kind<Type>::letter, int(sizeof(Type)), N, Bare<T>::writes)) {
      out.data = static_cast<T*>(array->data);
      for (int k = 0; k < N; k++) out.size[k] = array->shape[k];
    }
    return out;
  }
};

template <> struct Parameter<int64_t> {
  static void describe(Text& text) { text.add("int"); }
  static int64_t read(Reader& reader) { return reader.position++, (reader.slot++)->integer; }
};
template <> struct Parameter<bool> {
  static void describe(Text& text) { text.add("int"); }
  static bool read(Reader& reader) { return reader.position++, (reader.slot++)->integer != 0; }
};
template <> struct Parameter<double> {
  static void describe(Text& text) { text.add("real"); }
  static double read(Reader& reader) { return reader.position++, (reader.slot++)->real; }
};
template <> struct Parameter<int64_t&> {
  static void describe(Text& text) { text.add("gives:int"); }
  static int64_t& read(Reader& reader) { return (reader.result++)->integer; }
};
template <> struct Parameter<double&> {
  static void describe(Text& text) { text.add("gives:real"); }
  static double& read(Reader& reader) { return (reader.result++)->real; }
};

/// Arguments read in order: a braced initialiser is evaluated from left to right, a function call is not.
template <class... P> struct Arguments;
template <> struct Arguments<> {
  Arguments(Reader&, Context&) {}
  template <class F, class... Done>
  Status call(F function, Done&... done) {
    if constexpr (__is_same(decltype(function(done...)), void)) {
      function(done...);
      return Status::done;
    } else {
      return function(done...);
    }
  }
};
template <class P, class... Rest>
struct Arguments<P, Rest...> {
  P value;
  Arguments<Rest...> rest;
  Arguments(Reader& reader, Context& context) : value(Parameter<P>::read(reader)), rest(reader, context) {}
  template <class F, class... Done>
  Status call(F function, Done&... done) { return rest.call(function, done..., value); }
};
template <class... Rest>
struct Arguments<Context&, Rest...> {
  Context& value;
  Arguments<Rest...> rest;
  Arguments(Reader& reader, Context& context) : value(context), rest(reader, context) {}
  template <class F, class... Done>
  Status call(F function, Done&... done) { return rest.call(function, done..., value); }
};

template <class P> void describe(Text& text) {
  if constexpr (!__is_same(P, Context&)) {
    text.add(" ");
    Parameter<P>::describe(text);
  }
}

/// One function as Python calls it: the status, or -1 minus the position of the first argument that does not fit.
template <auto function> struct Entry;
template <class R, class... P, R (*function)(P...)>
struct Entry<function> {
  static void signature(Text& text) { (describe<P>(text), ...); }
  static int64_t call(const Slot* slots, Slot* results) {
    Context context;
    Reader reader{slots, results, 0, -1};
    Arguments<P...> arguments(reader, context);
    if (reader.misfit >= 0) return -1 - reader.misfit;
    return int64_t(arguments.call(function));
  }
};

using Call = int64_t (*)(const Slot*, Slot*);

template <auto... functions>
Call entry(int64_t which, char* buffer, int64_t size) {
  using Signature = void (*)(Text&);
  const Call calls[] = {&Entry<functions>::call...};
  const Signature signatures[] = {&Entry<functions>::signature...};
  if (which < 0 || which >= int64_t(sizeof...(functions))) return nullptr;
  Text text{buffer, size, 0};
  signatures[which](text);
  return text.length < size ? calls[which] : nullptr;
}

EXACTSHAP_END

/// Name the members of a struct of arrays in their order; Python passes a NamedTuple with the same fields.
#define EXACTSHAP_FIELDS(...)                                   \
  static const char* field_names() { return #__VA_ARGS__; }     \
  template <class Visitor>                                      \
  void each_field(Visitor& visitor) { visitor(__VA_ARGS__); }

/// Offer functions to Python under one name, the first whose arguments fit is taken: the instances of a template for each dtype.
#define EXACTSHAP_KERNEL(room, name, ...)                                                                     \
  extern "C" EXACTSHAP_API exactshap::EXACTSHAP_LEVEL::Call EXACTSHAP_JOIN(EXACTSHAP_LEVEL, room, name)(      \
      int64_t which, char* text, int64_t size) {                                                              \
    using namespace exactshap::EXACTSHAP_LEVEL;                                                               \
    return entry<__VA_ARGS__>(which, text, size);                                                             \
  }

/// Sizes that must agree, held against each other before anything is read: `EXACTSHAP_REQUIRE(b.size[1] == a.size[1]);`
#define EXACTSHAP_REQUIRE(condition) \
  do {                               \
    if (!(condition)) return Status::mismatch; \
  } while (0)
