#include "collectives/group/journal.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

struct Book {
  Operation& begin(Operation& operation) {
    operation.sequence = journal.number_collective();
    operation.call = {.kind = CollectiveKind::barrier, .count = operation.sequence};
    journal.begin(operation);
    return operation;
  }
  Journal journal{1, nullptr};
};

TEST(Journal, NumbersCollectivesAndCountsWhatIsIssued) {
  Book book;
  EXPECT_EQ(book.journal.number_collective(), 0u);
  EXPECT_EQ(book.journal.number_collective_at_once(), 1u);
  EXPECT_EQ(book.journal.next_collective(), 2u);
  EXPECT_EQ(book.journal.number_transfer(), 0u);
  book.journal.count_issued();
  Operation operation;
  operation.sequence = 1;
  book.journal.collective_at_once(operation, 0);
  EXPECT_EQ(book.journal.operations_issued(), 2u);
}

TEST(Journal, KnowsWhatIsUnderWayAndWhatIsOver) {
  Book book;
  EXPECT_EQ(book.journal.find(0).call, nullptr);
  Operation operation;
  book.begin(operation);
  ASSERT_NE(book.journal.find(0).call, nullptr);
  EXPECT_EQ(*book.journal.find(0).call, operation.call);
  EXPECT_FALSE(book.journal.find(0).finished);
  book.journal.end(operation, Status());
  EXPECT_TRUE(book.journal.find(0).finished);
}

TEST(Journal, CountsWhatWasCompletedBeforeTheFirstFailure) {
  Book book;
  Operation first, second, third;
  book.begin(first);
  book.begin(second);
  book.begin(third);
  book.journal.end(first, Status());
  EXPECT_EQ(book.journal.completed(), 3u);
  book.journal.give_up(third);
  book.journal.give_up(second);
  EXPECT_EQ(book.journal.completed(), 1u);
  book.journal.end(third, Status(Code::aborted, "failed"));
  book.journal.end(second, Status(Code::aborted, "failed"));
  EXPECT_EQ(book.journal.completed(), 1u);
}

TEST(Journal, WhatAllRanksRefuseCountsAsCompleted) {
  Book book;
  Operation refused, failed;
  book.begin(refused);
  book.begin(failed);
  book.journal.end(refused, Status(Code::unsupported, "memory of a device"));
  EXPECT_EQ(book.journal.completed(), 2u);
  EXPECT_EQ(book.journal.collectives().entries().front().state, History::State::failed);
  book.journal.give_up(failed);
  EXPECT_EQ(book.journal.completed(), 1u);
}

TEST(Journal, KeepsTransfersApart) {
  Book book;
  Operation transfer;
  transfer.kind = Operation::Kind::transfers;
  transfer.sequence = book.journal.number_transfer();
  book.journal.begin(transfer);
  book.journal.end(transfer, Status(Code::aborted, "failed"));
  EXPECT_EQ(book.journal.find(0).call, nullptr);
  EXPECT_EQ(book.journal.transfers().entries().size(), 1u);
  EXPECT_EQ(book.journal.collectives().entries().size(), 0u);
}

}  // namespace
}  // namespace tutti
