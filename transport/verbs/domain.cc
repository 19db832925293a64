#include "transport/verbs/domain.h"

#include <cerrno>
#include <utility>

#include "core/error_text.h"

namespace tutti::verbs {
namespace {

// Some devices claim to have windows, but cannot make one. So this function tries to make one.
bool windows_work(const Functions& functions, ibv_pd* domain) {
  ibv_device_attr limits = {};
  if (functions.query_device(domain->context, &limits) != 0) return false;
  if ((limits.device_cap_flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B)) == 0)
    return false;
  ibv_mw* const window = ibv_alloc_mw(domain, IBV_MW_TYPE_2);
  return window != nullptr && ibv_dealloc_mw(window) == 0;
}

}  // namespace

Domain::Domain(const Functions& functions, std::shared_ptr<Device> device, ibv_pd* domain)
    : functions_(functions),
      device_(std::move(device)),
      domain_(domain),
      has_windows_(windows_work(functions, domain)) {}

Domain::~Domain() { functions_.dealloc_pd(domain_); }

Result<SharedDomain> Domain::create(const Functions& functions, std::shared_ptr<Device> device) {
  ibv_pd* const domain = functions.alloc_pd(&device->context());
  if (domain == nullptr)
    return Status(Code::resource_exhausted, "the device gives no protection domain: " + error_text(errno));
  return SharedDomain(new Domain(functions, std::move(device), domain));
}

}  // namespace tutti::verbs
