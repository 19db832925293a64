#include "core/shared_library.h"

#include <dlfcn.h>
#include <sys/stat.h>

namespace tutti {

namespace {

// A pipe is never opened as a library, since the loader would wait forever for a writer.
bool is_pipe(const std::string& path) {
  struct stat info = {};
  return path.find('/') != std::string::npos && stat(path.c_str(), &info) == 0 && S_ISFIFO(info.st_mode);
}

}  // namespace

Result<SharedLibrary> SharedLibrary::open(std::span<const std::string> names) {
  for (const std::string& name : names) {
    if (is_pipe(name)) return Status(Code::unsupported, name + " is a pipe, not a library");
    if (void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE)) {
      return SharedLibrary(handle, name);
    }
  }
  std::string failures;
  for (const std::string& name : names) {
    if (void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) {
      return SharedLibrary(handle, name);
    }
    const char* const words = dlerror();
    if (!failures.empty()) failures += "; ";
    failures += words == nullptr ? name + " cannot be loaded" : words;
  }
  return Status(Code::unsupported, failures);
}

void* SharedLibrary::find(const char* function) const { return dlsym(handle_, function); }

}  // namespace tutti
