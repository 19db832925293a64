// If there are no headers of libibverbs, this file takes the place of most other files in this folder.
#include "transport/verbs/factory.h"

namespace tutti::verbs {

Result<std::unique_ptr<tutti::Transport>> create(const Options&) {
  return Status(Code::unsupported, "this tutti was built without the headers of libibverbs");
}

}  // namespace tutti::verbs
