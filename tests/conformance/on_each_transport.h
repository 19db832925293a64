#pragma once

#include <string>

#include <gtest/gtest.h>

#include "tests/support/cluster.h"

namespace tutti::test {

// `OnEachTransport` is a fixture that runs each test of a communicator over each transport.
class OnEachTransport : public testing::TestWithParam<std::string> {
 protected:
  ClusterOptions options() const { return {.transport = GetParam()}; }
};

inline std::string name_of_transport(const testing::TestParamInfo<std::string>& parameter) {
  return parameter.param;
}

// Waits for an operation and returns its status.
inline Status outcome(Work work) {
  try {
    work.wait();
    return Status();
  } catch (const Error& error) {
    return error.status();
  }
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace tutti::test
