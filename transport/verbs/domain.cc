#include "transport/verbs/domain.h"

#include <cerrno>
#include <utility>

#include "core/error_text.h"

namespace tutti::verbs {

Domain::Domain(const Functions& functions, std::shared_ptr<Device> device, ibv_pd* domain)
    : functions_(functions), device_(std::move(device)), domain_(domain) {}

Domain::~Domain() { functions_.dealloc_pd(domain_); }

Result<SharedDomain> Domain::create(const Functions& functions, std::shared_ptr<Device> device) {
  ibv_pd* const domain = functions.alloc_pd(&device->context());
  if (domain == nullptr)
    return Status(Code::resource_exhausted, "the device gives no protection domain: " + error_text(errno));
  return SharedDomain(new Domain(functions, std::move(device), domain));
}

}  // namespace tutti::verbs
