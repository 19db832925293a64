// This file takes the place of the others in this folder if there are no headers of libibverbs.
#include "transport/verbs/factory.h"

namespace tutti::verbs {

Result<std::unique_ptr<tutti::Transport>> create(const Options&) {
  return Status(Code::unsupported, "this tutti was built without the headers of libibverbs");
}

}  // namespace tutti::verbs
