#include "transport/staged/offload.h"

#include "transport/staged/session.h"

namespace tutti::staged {

std::string StagedOffload::facts() const {
  int version = 0;
  if (api_.DriverGetVersion(&version) != cuda::success) return "CUDA of unknown version";
  return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Result<std::unique_ptr<OffloadSession>> StagedOffload::open(OffloadPeers& peers) {
  Result<std::unique_ptr<Session>> session = Session::open(api_, peers, piece_bytes_);
  if (!session.ok()) return session.status();
  return std::unique_ptr<OffloadSession>(*std::move(session));
}

}  // namespace tutti::staged
