#include <tutti/memory.h>

namespace tutti {

std::string to_string(const Memory& memory) {
  if (memory.kind() == Memory::Kind::host) return "memory of the host";
  return "memory of CUDA device " + std::to_string(memory.device());
}

}  // namespace tutti
