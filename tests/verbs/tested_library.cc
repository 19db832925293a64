#include "tests/verbs/tested_library.h"

#include <cstdlib>
#include <stdexcept>

namespace tutti::test {
namespace {

bool wants_system() {
  const char* const choice = std::getenv("TEST_VERBS");
  return choice != nullptr && std::string(choice) == "system";
}

const verbs::Functions* system_functions() {
  const Result<const verbs::Functions*> loaded = verbs::load();
  if (!loaded.ok()) throw std::runtime_error(loaded.status().message());
  return *loaded;
}

}  // namespace

TestedLibrary::TestedLibrary() {
  if (wants_system()) {
    functions_ = system_functions();
    return;
  }
  provider_ = std::make_unique<provider::Provider>(std::vector{
      provider::ethernet_device("rxe0", "10.7.0.1"), provider::ethernet_device("rxe1", "10.7.0.2")});
  functions_ = &provider::Provider::functions();
}

}  // namespace tutti::test
