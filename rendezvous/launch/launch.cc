#include "rendezvous/launch/launch.h"

namespace tutti {

std::string to_string(const StoreLocation& location) {
  switch (location.kind) {
    case StoreLocation::Kind::tcp: {
      const bool v6 = location.host.find(':') != std::string::npos;
      return "tcp://" + (v6 ? "[" + location.host + "]" : location.host) + ":" +
             std::to_string(location.port);
    }
    case StoreLocation::Kind::file:
      return "file://" + location.path;
    case StoreLocation::Kind::pmi:
      return "the launcher's PMI (descriptor " + std::to_string(location.descriptor) + ")";
    case StoreLocation::Kind::pmix:
      return "the launcher's PMIx";
    case StoreLocation::Kind::mpi:
      return "mpi://";
    case StoreLocation::Kind::none:
      break;
  }
  return "none";
}

}  // namespace tutti
