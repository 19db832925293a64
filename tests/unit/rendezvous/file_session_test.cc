#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/random.h"
#include "rendezvous/meeting/session_file.h"
#include "tests/support/scratch_folder.h"

namespace tutti::file {
namespace {

using test::ScratchFolder;

SessionText some_session() {
  return {random_hex(16), random_secret(32), "0d5c8f2a-boot", {{"127.0.0.1", 4000}, {"fe80::1%eth0", 5000}}};
}

Result<SessionText> read_session(const std::string& path) {
  SessionFile file(path);
  return tutti::read_session(file, Deadline::never());
}

Status publish(SessionFile& file, const SessionText& session) {
  return file.publish(format_session(session), Deadline::never());
}

// Returns a session file that has been published.
std::unique_ptr<SessionFile> published(const std::string& path, const SessionText& session = some_session()) {
  auto file = std::make_unique<SessionFile>(path);
  const Status status = publish(*file, session);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return file;
}

// Returns the error of publishing a session at the path.
Status cannot_publish(const std::string& path) {
  SessionFile file(path);
  return publish(file, some_session());
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  chmod(path.c_str(), 0600);
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Checks that rank 0 and other ranks refuse the file at the path, and that both errors give the
// reason.
void expect_refused(const std::string& path, const std::string& why) {
  for (const Status& status : {read_session(path).status(), cannot_publish(path)}) {
    EXPECT_EQ(status.code(), Code::invalid_argument) << status.to_string();
    EXPECT_NE(status.message().find(path), std::string::npos) << status.to_string();
    EXPECT_NE(status.message().find(why), std::string::npos) << status.to_string();
  }
}

TEST(FileSession, FormatAndParse) {
  const SessionText session = some_session();
  const SessionText parsed = parse_session(format_session(session).reveal()).take();
  EXPECT_EQ(parsed.nonce, session.nonce);
  EXPECT_EQ(parsed.token.reveal(), session.token.reveal());
  EXPECT_EQ(parsed.boot_id, session.boot_id);
  EXPECT_EQ(parsed.endpoints, session.endpoints);
}

TEST(FileSession, EveryDamageIsNoticed) {
  const std::string text(format_session(some_session()).reveal());
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(parse_session(text.substr(0, length)).ok()) << length;
  }
  EXPECT_FALSE(parse_session(text + "x").ok());
  EXPECT_FALSE(parse_session(text + text).ok());
  EXPECT_FALSE(parse_session(std::string(100'000, 'x')).ok());
  EXPECT_FALSE(parse_session(std::string(4096, '\0')).ok());
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{{"session 1", "session 2"},
                                                                                 {" 4000", " 0"},
                                                                                 {" 4000", " 70000"},
                                                                                 {" 4000", ""},
                                                                                 {"nonce ", "nonce g"},
                                                                                 {"token ", "token "},
                                                                                 {"boot ", "boat "}}) {
    std::string damaged = text;
    damaged.replace(damaged.find(from), from.size(), to);
    EXPECT_TRUE(damaged == text || !parse_session(damaged).ok()) << damaged;
  }
}

TEST(FileSession, PublishedWholeAndPrivateAndRemoved) {
  const ScratchFolder folder;
  const std::string path = folder / "session";
  write_file(path, "tutti-session 1\ngarbage of an earlier run");
  const SessionText session = some_session();
  {
    const auto file = published(path, session);
    EXPECT_EQ(read_session(path).take().nonce, session.nonce);
    struct stat info = {};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    EXPECT_EQ(folder.entries(), 1u);  // no temporary file is left
  }
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(FileSession, OnlyItsOwnFileIsRemoved) {
  const ScratchFolder folder;
  const std::string path = folder / "session";
  const SessionText newer = some_session();
  auto mine = published(path);
  const auto theirs = published(path, newer);
  mine = nullptr;
  EXPECT_EQ(read_session(path).take().nonce, newer.nonce);
  unlink(path.c_str());
  theirs->restore_if_missing();
  EXPECT_EQ(read_session(path).take().nonce, newer.nonce);
  write_file(path, "somebody else's");
  theirs->restore_if_missing();
  EXPECT_EQ(content(path), "somebody else's");
}

TEST(FileSession, WhatMayStillBecomeASession) {
  const ScratchFolder folder;
  const std::string path = folder / "session";
  EXPECT_EQ(read_session(path).status().code(), Code::unreachable);
  for (const std::string& text : {std::string(), std::string("tutti-session 1\nnonce"),
                                  "tutti-session 2" + std::string(5'000'000, 'x')}) {
    write_file(path, text);
    EXPECT_EQ(read_session(path).status().code(), Code::unreachable);
    const auto replaces = published(path);
    EXPECT_TRUE(read_session(path).ok());
  }
  // Rank 0 replaces a file that a user has made by `touch`, although other users can read it. An
  // empty file cannot mislead a rank.
  write_file(path, "");
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  const auto replaces = published(path);
  EXPECT_TRUE(read_session(path).ok());
}

TEST(FileSession, OthersDataAreLeftAlone) {
  const ScratchFolder folder;
  const std::string path = folder / "data";
  for (const std::string& data : {std::string("x"), std::string("weeks of work"), std::string(100, '\0'),
                                  std::string(5'000'000, 'x')}) {
    write_file(path, data);
    expect_refused(path, "it does not hold a session");
    ASSERT_EQ(chmod(path.c_str(), 0644), 0);
    expect_refused(path, "it does not hold a session");
    EXPECT_TRUE(content(path) == data);
  }
}

TEST(FileSession, WhatIsNoRegularFileIsRefused) {
  const ScratchFolder folder;
  const auto session = published(folder / "session");
  for (const char* target : {"session", "nothing"}) {
    const std::string link = folder / "link-to-" + target;
    ASSERT_EQ(symlink((folder / target).c_str(), link.c_str()), 0);
    expect_refused(link, "symbolic link");
    EXPECT_TRUE(std::filesystem::is_symlink(link));
  }
  const std::string fifo = folder / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  expect_refused(fifo, "not a regular file");
  EXPECT_TRUE(std::filesystem::is_fifo(fifo));
}

TEST(FileSession, AFileThatOthersMayReadOrChangeIsRefused) {
  const ScratchFolder folder;
  const std::string path = folder / "session";
  const auto session = published(path);
  for (const mode_t mode : {0604, 0602, 0601, 0640, 0620, 0610, 0666}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    expect_refused(path, "its mode is 06");
  }
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EXPECT_TRUE(read_session(path).ok());
}

TEST(FileSession, AFileOfAnotherOwnerIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  const ScratchFolder folder;
  const std::string path = folder / "session";
  for (const std::string& text : {std::string(format_session(some_session()).reveal()), std::string()}) {
    write_file(path, text);
    ASSERT_EQ(chown(path.c_str(), 1, 1), 0);
    expect_refused(path, "it belongs to user daemon (uid 1), and this process runs as user root (uid 0)");
    ASSERT_EQ(chown(path.c_str(), 4'000'123, 1), 0);
    expect_refused(path, "it belongs to user (uid 4000123)");
    EXPECT_EQ(content(path), text);
  }
}

TEST(FileSession, WhatNeverWillIsOneClearError) {
  const ScratchFolder folder;
  const std::string subfolder = folder / "sub";
  ASSERT_EQ(mkdir(subfolder.c_str(), 0700), 0);
  const std::string orphan = folder / "missing/session";
  const auto expect = [](const Status& status, const std::string& path, const std::string& reason) {
    EXPECT_EQ(status.code(), Code::invalid_argument) << status.to_string();
    EXPECT_NE(status.message().find(path), std::string::npos) << status.to_string();
    EXPECT_NE(status.message().find(reason), std::string::npos) << status.to_string();
  };
  expect(cannot_publish(subfolder), subfolder, "is a folder");
  expect(read_session(subfolder).status(), subfolder, "is a folder");
  expect(cannot_publish(orphan), orphan, "does not exist");
  expect(read_session(orphan).status(), orphan, "does not exist");
  expect(cannot_publish("/sys/tutti-session"), "/sys/tutti-session", "not writable");
}

TEST(FileSession, AnUnwritableFolderIsNamed) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const ScratchFolder folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 0500), 0);
  const Status status = cannot_publish(folder / "s");
  EXPECT_NE(status.message().find("is not writable"), std::string::npos) << status.to_string();
  chmod(folder.path().c_str(), 0700);
}

}  // namespace
}  // namespace tutti::file
