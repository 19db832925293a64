#include "core/shown.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(Shown, NothingControlsATerminal) {
  EXPECT_EQ(printable("plain, with 'quotes' and \\"), "plain, with 'quotes' and \\");
  EXPECT_EQ(printable("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x8e\xb6"),
            "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x8e\xb6");
  EXPECT_EQ(printable("\x1b[2Ja\nb\rc\td\x7f"), "\\x1b[2Ja\\nb\\rc\\td\\x7f");
  EXPECT_EQ(printable(std::string("\0", 1)), "\\x00");
  // These are C1 control characters, as UTF-8 and as the single bytes that 8-bit terminals accept.
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m\x9b"
                      "31m"),
            "\\xc2\\x9b31m\\x9b31m");
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(printable(printable("\x1b\n")), printable("\x1b\n"));
}

TEST(Shown, SecretsAreMaskedByName) {
  for (const char* name : {"TUTTI_TOKEN", "PMI_SHARED_SECRET", "SLURM_JWT", "my_password", "TUTTI_TOKN"}) {
    EXPECT_EQ(shown(name, "abracadabra"), "(set)") << name;
  }
  EXPECT_EQ(shown("TUTTI_TOKEN_FILE", "/run/token"), "/run/token");
  EXPECT_EQ(shown("TUTTI_TLS_KEY", "/run/key"), "/run/key");
  EXPECT_EQ(shown("RANK", "3\r"), "3\\r");
}

TEST(Shown, UnmeantEndsAreNamed) {
  for (const char* fine : {"", "x", "\"", "a\"", "\"a", "it's", "'a\""})
    EXPECT_EQ(unmeant_ends(fine), "") << fine;
  for (const char* quoted : {"\"\"", "\"a\"", "'3'"}) {
    EXPECT_NE(unmeant_ends(quoted).find("quotes"), std::string_view::npos) << quoted;
  }
  for (const char* windows : {"3\r", "\r", "\"a\"\r"}) {
    EXPECT_NE(unmeant_ends(windows).find("carriage return"), std::string_view::npos) << windows;
  }
}

TEST(Shown, SecretsAreMaskedInUrls) {
  EXPECT_EQ(shown("", "tcp://b:1?rank=0&token=x&timeout=3s"), "tcp://b:1?rank=0&token=(set)&timeout=3s");
  EXPECT_EQ(shown("", "tcp://me:x@b:1/"), "tcp://(set)@b:1/");
  EXPECT_EQ(shown("", "x@b:1"), "(set)@b:1");
  EXPECT_EQ(shown("", "file:///a@b?rank=0"), "file:///a@b?rank=0");
  EXPECT_EQ(shown("", "http://b/images:a@1"), "http://b/images:a@1");
  EXPECT_EQ(shown("", "tcp://b:1?mail=a@b"), "tcp://b:1?mail=a@b");
}

// Users write these characters in passwords, although a URL should have %2F, %3F, %23 and %40
// instead.
TEST(Shown, PasswordsWithTheSignsOfAUrlAreMasked) {
  for (const char* password : {"pa/ss", "/", "1/2", "pa?ss", "pa#ss", "p@ss", "p@s/s@", "a/b?c"}) {
    const std::string login = std::string("me:") + password;
    EXPECT_EQ(shown("", "tcp://" + login + "@b:1/path?rank=0"), "tcp://(set)@b:1/path?rank=0") << password;
    EXPECT_EQ(shown("", login + "@b:1"), "(set)@b:1") << password;
  }
}

}  // namespace
}  // namespace tutti
