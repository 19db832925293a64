#include "core/error_text.h"

#include <cerrno>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

namespace tutti {
namespace {

using ::testing::HasSubstr;

TEST(ErrorText, IsWhatTheSystemSays) { EXPECT_EQ(error_text(ENOENT), "No such file or directory"); }

TEST(ErrorText, TellsWhoseDescriptorsHaveRunOut) {
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(error_text(EMFILE), "Too many open files: this process has used up the " +
                                    std::to_string(limit.rlim_cur) +
                                    " file descriptors that it may have (RLIMIT_NOFILE, ulimit -n)");
  EXPECT_THAT(error_text(ENFILE), HasSubstr("this host has no file descriptors left"));
}

}  // namespace
}  // namespace tutti
