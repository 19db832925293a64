#include "rendezvous/meeting/pmix_api.h"

#include "core/shared_library.h"

namespace tutti::pmix {

Result<Api> load(std::span<const std::string> names) {
  const Result<SharedLibrary> library = SharedLibrary::open(names);
  if (!library.ok()) return library.status();
  Api api{};
  const bool complete = library->bind("PMIx_Init", api.Init) && library->bind("PMIx_Put", api.Put) &&
                        library->bind("PMIx_Commit", api.Commit) && library->bind("PMIx_Fence", api.Fence) &&
                        library->bind("PMIx_Get", api.Get) && library->bind("PMIx_Finalize", api.Finalize) &&
                        library->bind("PMIx_Error_string", api.Error_string);
  if (!complete) return Status(Code::unsupported, library->name() + " does not have all functions of PMIx");
  return api;
}

}  // namespace tutti::pmix
