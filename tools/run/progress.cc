#include "tools/run/progress.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tutti::tools {
namespace {

constexpr std::chrono::seconds first_report(2);
constexpr std::size_t most_named = 10;

}  // namespace

Progress::Progress(asio::io_context& io, Look look, Note note)
    : timer_(io), look_(std::move(look)), note_(std::move(note)) {}

void Progress::start() {
  started_ = std::chrono::steady_clock::now();
  await(first_report);
}

void Progress::stop() {
  stopped_ = true;
  timer_.cancel();
}

void Progress::await(std::chrono::steady_clock::duration since_start) {
  timer_.expires_at(started_ + since_start);
  timer_.async_wait([this, since_start](const asio::error_code& error) {
    // A call that is already due happens even after the timer has been cancelled.
    if (error || stopped_) return;
    note_(progress_report(look_(), since_start));
    await(2 * since_start);
  });
}

std::string progress_report(const Progress::State& state, std::chrono::steady_clock::duration elapsed) {
  const std::chrono::duration<double> time = elapsed;
  std::string text = fmt::format("{} of {} hosts are up after {:.1f} s; waiting for",
                                 state.hosts - state.missing.size(), state.hosts, time.count());
  const std::size_t named = std::min(state.missing.size(), most_named);
  for (std::size_t i = 0; i < named; ++i) {
    text += "\n  " + state.missing[i].name + ": " + state.missing[i].awaited;
  }
  if (named < state.missing.size()) text += fmt::format("\n  and {} more", state.missing.size() - named);
  return text;
}

}  // namespace tutti::tools
