#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/verbs/provider/provider.h"

namespace tutti::test {

// `TestedLibrary` is the libibverbs that a test runs with. It is a `Provider` with the devices rxe0 and rxe1.
// If the variable TEST_VERBS is `system`, as in the virtual machines of the tests, the test runs with the
// system's library and its devices instead.
class TestedLibrary {
 public:
  // Throws std::runtime_error if the system's library is wanted, and cannot be loaded.
  TestedLibrary();

  const verbs::Functions& functions() const { return *functions_; }
  // Returns null if the library is the system's.
  provider::Provider* provider() const { return provider_.get(); }

 private:
  std::unique_ptr<provider::Provider> provider_;
  const verbs::Functions* functions_;
};

}  // namespace tutti::test
