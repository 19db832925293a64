// Tests that libibverbs is found at run time, if the system has it.
#include "transport/verbs/library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace tutti::verbs {
namespace {

TEST(VerbsLibrary, IsFoundExactlyIfTheSystemHasIt) {
  const bool present = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL) != nullptr;
  const Result<const Functions*> functions = load();
  ASSERT_EQ(functions.ok(), present) << functions.status().to_string();
  if (!present) {
    EXPECT_EQ(functions.status().code(), Code::unsupported);
    EXPECT_NE(functions.status().message().find("libibverbs1"), std::string::npos)
        << functions.status().to_string();
    return;
  }
  EXPECT_EQ(*functions, *load());
  EXPECT_STREQ((*functions)->wc_status_str(IBV_WC_RETRY_EXC_ERR), "transport retry counter exceeded");
}

}  // namespace
}  // namespace tutti::verbs
