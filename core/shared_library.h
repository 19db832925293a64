#pragma once

#include <span>
#include <string>
#include <utility>

#include <tutti/status.h>

namespace tutti {

// A `SharedLibrary` is a library that was found at run time. It stays loaded until the process ends, since
// such libraries have their own threads and state.
class SharedLibrary {
 public:
  // Opens the first of `names` that the process has already loaded, or else the first that can be loaded. If
  // no library can be loaded, the status quotes the loader's error for each name. Any thread may call.
  static Result<SharedLibrary> open(std::span<const std::string> names);

  // Sets `function`, a pointer, to the library's function of that name. Returns false, and sets it to null,
  // if the library does not have the function.
  template <class Function>
  bool bind(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(find(name));
    return function != nullptr;
  }
  // Returns the name under which the library was found.
  const std::string& name() const { return name_; }

 private:
  void* find(const char* function) const;
  SharedLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}

  void* handle_;
  std::string name_;
};

}  // namespace tutti
