#include "rendezvous/meeting/announcers.h"

#include <vector>

#include "rendezvous/meeting/pmi_announcer.h"
#include "rendezvous/meeting/pmix_announcer.h"
#include "rendezvous/meeting/session_file.h"

namespace tutti {
namespace {

// Returns the names under which to look for PMIx. The launcher's own PMIx comes first, since the
// system's PMIx may have another version, and the launcher complains about that.
std::vector<std::string> pmix_libraries(const std::string& chosen, const std::string& launcher_folder) {
  if (!chosen.empty()) return {chosen};
  const std::string name = "libpmix.so.2";
  if (launcher_folder.empty()) return {name};
  return {launcher_folder + "/lib/" + name, launcher_folder + "/lib/openmpi/" + name, name};
}

}  // namespace

std::unique_ptr<Announcer> announcer_for(const Launch& launch, const std::string& pmix_library,
                                         const std::function<bool()>& interrupted) {
  const StoreLocation& place = launch.store;
  if (place.kind == StoreLocation::Kind::file) return std::make_unique<file::SessionFile>(place.path);
  // The clients are static, since a process talks to its launcher until the process exits.
  if (place.kind == StoreLocation::Kind::pmix) {
    static PmixClient client(pmix_libraries(pmix_library, place.path), launch.rank);
    return std::make_unique<PmixAnnouncer>(client, place.fence_only, interrupted);
  }
  static PmiClient client(place.descriptor);
  return std::make_unique<PmiAnnouncer>(client, interrupted);
}

}  // namespace tutti
