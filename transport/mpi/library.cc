#include "transport/mpi/library.h"

#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/shared_library.h"

namespace tutti::mpi {
namespace {

Status unusable(const std::string& message) { return Status(Code::unsupported, message); }

// `Values` are the constants of an ABI, with the types that MPI's functions take.
template <class Raw>
struct Values {
  Raw comm_world, byte, errors_return;
  void* status_ignore;
  int any_source;
  ThreadLevels levels;
};

// `Bound` is a library whose handles have the type `Raw`.
template <class Raw>
class Bound final : public Library {
 public:
  Bound(std::string name, std::string version, Family family, const Table<Raw>& table,
        const Values<Raw>& values)
      : Library(std::move(name), std::move(version), family), mpi_(table), values_(values) {}

  bool is_initialized() const override { return flag_of(mpi_.Initialized); }
  bool is_finalized() const override { return flag_of(mpi_.Finalized); }
  bool is_on_main_thread() const override { return flag_of(mpi_.Is_thread_main); }
  Status status_of(Outcome outcome, const std::string& attempt) const override;

  Outcome initialize() const override {
    int provided = 0;
    return mpi_.Init_thread(nullptr, nullptr, values_.levels.multiple, &provided);
  }
  Outcome finalize() const override { return mpi_.Finalize(); }
  ThreadLevel thread_level() const override;
  Handle world() const override {
    Handle handle;
    raw(handle) = values_.comm_world;
    return handle;
  }
  Outcome rank_in(Handle communicator, int& rank) const override {
    return mpi_.Comm_rank(raw(communicator), &rank);
  }
  Outcome size_of(Handle communicator, int& size) const override {
    return mpi_.Comm_size(raw(communicator), &size);
  }
  Outcome return_errors(Handle communicator) const override {
    return mpi_.Comm_set_errhandler(raw(communicator), values_.errors_return);
  }
  Outcome start_copy(Handle communicator, Handle& copy, Handle& request) const override {
    return mpi_.Comm_idup(raw(communicator), &raw(copy), &raw(request));
  }
  Outcome start_broadcast(std::span<std::byte> bytes, int root, Handle communicator,
                          Handle& request) const override {
    return mpi_.Ibcast(bytes.data(), static_cast<int>(bytes.size()), values_.byte, root, raw(communicator),
                       &raw(request));
  }
  Outcome start_send(std::span<const std::byte> bytes, int to, int tag, Handle communicator,
                     Handle& request) const override {
    return mpi_.Isend(bytes.data(), static_cast<int>(bytes.size()), values_.byte, to, tag, raw(communicator),
                      &raw(request));
  }
  Outcome start_receive(std::span<std::byte> memory, int tag, Handle communicator,
                        Handle& request) const override {
    return mpi_.Irecv(memory.data(), static_cast<int>(memory.size()), values_.byte, values_.any_source, tag,
                      raw(communicator), &raw(request));
  }
  Outcome test_receive(Handle& request, bool& done, std::optional<std::size_t>& bytes) const override;
  Outcome cancel(Handle& request) const override { return mpi_.Cancel(&raw(request)); }
  Outcome test(Handle& request, bool& done) const override {
    int flag = 0;
    const Outcome outcome = mpi_.Test(&raw(request), &flag, values_.status_ignore);
    done = flag != 0;
    return outcome;
  }

 private:
  static Raw& raw(Handle& handle) {
    if constexpr (std::is_pointer_v<Raw>)
      return handle.address;
    else
      return handle.integer;
  }
  static bool flag_of(Outcome (*function)(int* flag)) {
    int flag = 0;
    return function(&flag) == success && flag != 0;
  }

  const Table<Raw> mpi_;
  const Values<Raw> values_;
};

template <class Raw>
Status Bound<Raw>::status_of(Outcome outcome, const std::string& attempt) const {
  if (outcome == success) return {};
  std::array<char, longest_error> text = {};
  int length = 0;
  const bool known = mpi_.Error_string(outcome, text.data(), &length) == success;
  const std::string words = known ? std::string(text.data()) : "error " + std::to_string(outcome);
  return Status(Code::invalid_argument, attempt + " fails: " + words);
}

template <class Raw>
Outcome Bound<Raw>::test_receive(Handle& request, bool& done, std::optional<std::size_t>& bytes) const {
  alignas(16) std::array<std::byte, largest_status> status;
  int flag = 0, cancelled = 0, count = 0;
  Outcome outcome = mpi_.Test(&raw(request), &flag, status.data());
  done = flag != 0;
  bytes.reset();
  if (outcome != success || !done) return outcome;
  outcome = mpi_.Test_cancelled(status.data(), &cancelled);
  if (outcome != success || cancelled != 0) return outcome;
  outcome = mpi_.Get_count(status.data(), values_.byte, &count);
  if (outcome == success) bytes = static_cast<std::size_t>(count);
  return outcome;
}

template <class Raw>
ThreadLevel Bound<Raw>::thread_level() const {
  int provided = 0;
  if (mpi_.Query_thread(&provided) != success) return ThreadLevel::single;
  if (provided >= values_.levels.multiple) return ThreadLevel::multiple;
  if (provided >= values_.levels.serialized) return ThreadLevel::serialized;
  return provided >= values_.levels.funneled ? ThreadLevel::funneled : ThreadLevel::single;
}

// Returns the name of a function that the library lacks, or null if it has all that are needed.
template <class Raw>
const char* bind_all(const SharedLibrary& library, Table<Raw>& table) {
#define TUTTI_BIND(member) \
  if (!library.bind("MPI_" #member, table.member)) return "MPI_" #member
  TUTTI_BIND(Initialized);
  TUTTI_BIND(Finalized);
  TUTTI_BIND(Init_thread);
  TUTTI_BIND(Finalize);
  TUTTI_BIND(Query_thread);
  TUTTI_BIND(Is_thread_main);
  TUTTI_BIND(Get_library_version);
  TUTTI_BIND(Error_string);
  TUTTI_BIND(Comm_rank);
  TUTTI_BIND(Comm_size);
  TUTTI_BIND(Comm_idup);
  TUTTI_BIND(Comm_set_errhandler);
  TUTTI_BIND(Ibcast);
  TUTTI_BIND(Test);
  TUTTI_BIND(Isend);
  TUTTI_BIND(Irecv);
  TUTTI_BIND(Cancel);
  TUTTI_BIND(Test_cancelled);
  TUTTI_BIND(Get_count);
#undef TUTTI_BIND
  return nullptr;
}

template <class Raw>
Result<std::unique_ptr<Library>> make(const SharedLibrary& library, const std::string& version, Family family,
                                      const Values<Raw>& values) {
  Table<Raw> table{};
  if (const char* const missing = bind_all(library, table))
    return unusable(library.name() + " has no function " + missing + " (MPI 3.0 is needed)");
  return std::unique_ptr<Library>(
      std::make_unique<Bound<Raw>>(library.name(), version, family, table, values));
}

void* pointer(std::uintptr_t value) { return reinterpret_cast<void*>(value); }

Values<int> integers(const Constants& abi) {
  return {static_cast<int>(abi.comm_world),
          static_cast<int>(abi.byte),
          static_cast<int>(abi.errors_return),
          pointer(abi.status_ignore),
          abi.any_source,
          abi.levels};
}

Values<void*> pointers(const Constants& abi) {
  return {pointer(abi.comm_world),    pointer(abi.byte), pointer(abi.errors_return),
          pointer(abi.status_ignore), abi.any_source,    abi.levels};
}

// Returns whether the library is Open MPI's, and sets `values` to the addresses of its symbols.
bool find_open_mpi(const SharedLibrary& library, Values<void*>& values) {
  values.status_ignore = pointer(open_mpi_abi::status_ignore);
  values.any_source = open_mpi_abi::any_source;
  values.levels = open_mpi_abi::levels;
  return library.bind(open_mpi_abi::comm_world, values.comm_world) &&
         library.bind(open_mpi_abi::byte, values.byte) &&
         library.bind(open_mpi_abi::errors_return, values.errors_return);
}

// Returns whether the library has the standard's ABI. MPICH 5 has `MPI_Abi_get_version` in both of its
// libraries, and the result of this function tells them apart.
bool has_standard_abi(const SharedLibrary& library) {
  Outcome (*get_version)(int* major, int* minor) = nullptr;
  int major = -1, minor = -1;
  return library.bind("MPI_Abi_get_version", get_version) && get_version(&major, &minor) == success &&
         major >= 1;
}

// Returns whether this version text belongs to a library of MPICH's family.
bool is_like_mpich(std::string_view version) {
  for (const std::string_view maker : {"MPICH", "Intel(R) MPI", "MVAPICH"})
    if (version.find(maker) != version.npos) return true;
  return false;
}

// Returns the library's description of itself, up to the first line end or comma, with single spaces.
std::string version_of(const SharedLibrary& library) {
  Outcome (*get)(char* text, int* length) = nullptr;
  if (!library.bind("MPI_Get_library_version", get)) return {};
  std::string text(longest_version, '\0');
  int length = 0;
  if (get(text.data(), &length) != success) return {};
  std::string line;
  for (const char letter : std::string_view(text.c_str())) {
    if (letter == '\n' || letter == ',') break;
    const bool space = letter == ' ' || letter == '\t';
    if (!space) line += letter;
    if (space && !line.empty() && line.back() != ' ') line += ' ';
  }
  return line;
}

}  // namespace

Result<std::unique_ptr<Library>> Library::open(std::span<const std::string> names) {
  const Result<SharedLibrary> library = SharedLibrary::open(names);
  if (!library.ok()) return library.status();
  const std::string version = version_of(*library);
  if (version.empty()) return unusable(library->name() + " is no MPI library of version 3.0 or later");
  Values<void*> symbols{};
  if (find_open_mpi(*library, symbols)) return make(*library, version, Family::open_mpi, symbols);
  if (has_standard_abi(*library)) return make(*library, version, Family::standard, pointers(standard_abi));
  if (is_like_mpich(version)) return make(*library, version, Family::mpich, integers(mpich_abi));
  return unusable(library->name() + " (" + version + ") has an ABI that tutti does not know");
}

std::string Library::describe() const { return name_ + " (" + version_ + ")"; }

}  // namespace tutti::mpi
