#include "collectives/group/inquiry.h"

#include <thread>

#include <gtest/gtest.h>

namespace tutti {
namespace {

constexpr std::uint64_t asked = 7;

ExpiredNote about() {
  ExpiredNote note;
  note.sequence = asked;
  note.text = "it was not over in time";
  return note;
}

std::string name(int rank) { return "rank " + std::to_string(rank); }

HereNote comes_to(std::uint64_t next) { return {.sequence = asked, .next = next}; }

TEST(Inquiry, IsOverWhenAllHaveAnswered) {
  Inquiry inquiry(about(), 2);
  inquiry.take_answer(0, comes_to(asked + 1));
  EXPECT_FALSE(inquiry.is_over() && !inquiry.next_deadline().expired());
  inquiry.take_answer(1, comes_to(asked + 1));
  EXPECT_TRUE(inquiry.is_over());
  EXPECT_EQ(inquiry.verdict(name).message(), "it was not over in time");
  EXPECT_EQ(inquiry.verdict(name).code(), Code::timeout);
  EXPECT_EQ(inquiry.culprit(), -1);
}

TEST(Inquiry, NamesThoseWhoAreLateAndThoseWhoAreSilent) {
  Inquiry inquiry(about(), 4);
  inquiry.take_answer(3, comes_to(asked));
  inquiry.take_answer(0, comes_to(asked + 5));
  inquiry.take_answer(1, comes_to(2));
  EXPECT_EQ(inquiry.verdict(name).message(),
            "it was not over in time; late: rank 3, rank 1; not answering: rank 2");
  EXPECT_EQ(inquiry.culprit(), -1);
}

TEST(Inquiry, TakesTheFirstAnswerOfEachRankToItsOwnQuestion) {
  Inquiry inquiry(about(), 2);
  inquiry.take_answer(1, {.sequence = asked - 1, .next = 0});
  inquiry.take_answer(1, comes_to(asked + 1));
  inquiry.take_answer(1, comes_to(asked));
  EXPECT_EQ(inquiry.verdict(name).message(), "it was not over in time; not answering: rank 0");
}

// A rank that has also reported the timeout must not be listed as "not answering", even if it is
// too busy to answer.
TEST(Inquiry, DoesNotCallARankSilentThatHasReportedTheSame) {
  Inquiry inquiry(about(), 3);
  inquiry.take_answer(0, comes_to(asked + 1));
  inquiry.take_report(1, about());
  EXPECT_EQ(inquiry.verdict(name).message(), "it was not over in time; not answering: rank 2");
  EXPECT_EQ(inquiry.culprit(), 2);
}

TEST(Inquiry, NamesNotMoreThanCanBeRead) {
  Inquiry inquiry(about(), 20);
  for (int rank = 0; rank < 20; ++rank) inquiry.take_answer(rank, comes_to(asked));
  const std::string text = inquiry.verdict(name).message();
  EXPECT_NE(text.find("rank 15 and 4 more"), std::string::npos) << text;
}

TEST(Inquiry, DoesNotWaitForeverForAnswers) {
  const Inquiry inquiry(about(), 2);
  const Deadline patience = Deadline::after(std::chrono::seconds(10));
  while (!inquiry.is_over() && !patience.expired()) std::this_thread::yield();
  EXPECT_TRUE(inquiry.is_over());
}

}  // namespace
}  // namespace tutti
