#pragma once

#include <functional>
#include <memory>
#include <string>

#include "rendezvous/launch/launch.h"
#include "rendezvous/meeting/announcer.h"

namespace tutti {

// Returns the announcer for the place where the ranks of the launch meet: a file, or the launcher.
// `pmix_library` is the file of PMIx's library; if it is empty, the library is searched for. While an
// announcer waits for the launcher, it asks `interrupted`.
std::unique_ptr<Announcer> announcer_for(const Launch& launch, const std::string& pmix_library,
                                         const std::function<bool()>& interrupted);

}  // namespace tutti
