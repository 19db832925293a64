#include "core/descriptor.h"

#include <array>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tutti {
namespace {

bool is_open(int number) { return fcntl(number, F_GETFD) >= 0; }

bool is_pipe(int number) {
  struct stat info = {};
  return fstat(number, &info) == 0 && S_ISFIFO(info.st_mode);
}

// Returns both ends of a new pipe.
std::array<int, 2> new_pipe() {
  std::array<int, 2> ends = {-1, -1};
  EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  return ends;
}

TEST(Descriptor, ClosesWhatItOwns) {
  const auto [out, in] = new_pipe();
  {
    Descriptor first(out);
    Descriptor second = std::move(first);
    EXPECT_FALSE(first);
    EXPECT_EQ(second.get(), out);
    second = Descriptor(in);
    EXPECT_FALSE(is_open(out));
    EXPECT_TRUE(is_open(in));
  }
  EXPECT_FALSE(is_open(in));
}

TEST(Descriptor, LeavesWhatWasReleased) {
  const auto [out, in] = new_pipe();
  Descriptor both[] = {Descriptor(out), Descriptor::guarded(in)};
  EXPECT_EQ(both[0].release(), out);
  EXPECT_EQ(both[1].release(), in);
  for (Descriptor& one : both) one.reset();
  EXPECT_TRUE(is_open(out));
  EXPECT_TRUE(is_open(in));
  close(out);
  close(in);
}

TEST(Descriptor, IsNowhereInAForkedChildIfGuarded) {
  const auto [out, in] = new_pipe();
  const Descriptor plain(out);
  Descriptor guarded = Descriptor::guarded(in);
  const Descriptor moved = std::move(guarded);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(is_pipe(plain.get()) && is_open(moved.get()) && !is_pipe(moved.get()) ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(is_pipe(moved.get()));
}

}  // namespace
}  // namespace tutti
