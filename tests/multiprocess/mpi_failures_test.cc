// Tests the errors of meeting through MPI. The MPI is a fake, so no real MPI is needed. The fake's world has
// one rank.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/multiprocess/launched_ranks.h"
#include "tests/support/process.h"

namespace tutti::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const Words rank_program = {TUTTI_BIN_DIR "/tests/mpi_meeting_rank"};

Process::Environment with(const std::string& mode, Process::Environment environment = {}) {
  environment["TUTTI_MPI_LIBRARY"] = TUTTI_FAKE_MPI;
  environment["FAKE_MPI"] = mode;
  return environment;
}

// Runs a rank that must fail, and returns its error. MPI must not be finalized.
std::string error_of(const std::string& mode, const Process::Environment& more = {}) {
  Process process(rank_program, with(mode, more));
  EXPECT_EQ(process.wait(), 1) << process.report();
  EXPECT_THAT(process.out(), Not(HasSubstr("finalized"))) << process.report();
  return process.err();
}

TEST(MpiFailures, WithoutAFailureTheProcessFinalizesMpiAtItsEnd) {
  Process process(rank_program + Words{"plain", "2"}, with(""));
  EXPECT_EQ(process.wait(), 0) << process.report();
  EXPECT_EQ(process.out(), sum_on(1) + sum_on(1) + "finalized\n");
}

TEST(MpiFailures, AFailedCallIsToldWithMpisOwnText) {
  EXPECT_THAT(error_of("init_fails"), HasSubstr("MPI_Init_thread fails: the fake's error 16"));
  EXPECT_THAT(error_of("copy_fails"), HasSubstr("MPI_Comm_idup fails: the fake's error 16"));
  EXPECT_THAT(error_of("broadcast_fails"), HasSubstr("MPI_Ibcast fails: the fake's error 16"));
}

TEST(MpiFailures, ACallThatDoesNotReturnEndsAtTheTimeLimit) {
  const Process::Environment soon = {{"TUTTI_INIT_TIMEOUT", "2s"}};
  EXPECT_THAT(error_of("init_hangs", soon), AllOf(HasSubstr("timeout"), HasSubstr("MPI_Init_thread")));
  EXPECT_THAT(error_of("copy_hangs", soon), AllOf(HasSubstr("timeout"), HasSubstr("MPI_Comm_idup")));
}

TEST(MpiFailures, AThreadThatMpiForbidsIsRefused) {
  Process process(rank_program, with("funneled"));
  EXPECT_EQ(process.wait(), 1) << process.report();
  EXPECT_THAT(process.err(), AllOf(HasSubstr("MPI_THREAD_SERIALIZED"), HasSubstr("MPI_THREAD_MULTIPLE")));
}

TEST(MpiFailures, AProgramThatMakesAllCallsOnOneThreadIsFine) {
  Process process(rank_program + Words{"first"}, with("funneled"));
  EXPECT_EQ(process.wait(), 0) << process.report();
  EXPECT_EQ(process.out(), sum_on(1) + "finalized\n");
}

TEST(MpiFailures, ALauncherOfAnotherMpiIsNamed) {
  Process process(rank_program, with("", {{"PMI_SIZE", "4"}, {"PMI_RANK", "2"}}));
  EXPECT_EQ(process.wait(), 1) << process.report();
  EXPECT_THAT(process.err(), AllOf(HasSubstr("mismatch"), HasSubstr("Fake MPI 5.0"), HasSubstr("PMI_SIZE=4"),
                                   HasSubstr("TUTTI_MPI_LIBRARY")));
}

TEST(MpiFailures, AFinalizedMpiIsAnError) {
  Process process(rank_program + Words{"finalized"}, with(""));
  EXPECT_EQ(process.wait(), 1) << process.report();
  EXPECT_THAT(process.err(), AllOf(HasSubstr("already finalized"), HasSubstr("Fake MPI 5.0")));
}

TEST(MpiFailures, ALibraryThatIsNoMpiIsRefused) {
  EXPECT_THAT(error_of("incomplete"), AllOf(HasSubstr("unsupported"), HasSubstr("is no MPI library")));
}

TEST(MpiFailures, WhatContradictsMpiIsAnError) {
  Process process(rank_program, with("", {{"TUTTI_RANK", "1"}, {"TUTTI_WORLD_SIZE", "2"}}));
  EXPECT_EQ(process.wait(), 1) << process.report();
  EXPECT_THAT(process.err(), AllOf(HasSubstr("in MPI"), HasSubstr("in TUTTI_RANK")));
}

}  // namespace
}  // namespace tutti::test
