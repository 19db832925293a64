#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

namespace tutti::tools {

// `Progress` tells the user at growing intervals which hosts have not started yet, and why.
class Progress {
 public:
  struct Host {
    std::string name;
    std::string awaited;
  };
  struct State {
    std::size_t hosts = 0;
    std::vector<Host> missing;
  };
  using Look = std::function<State()>;
  using Note = std::function<void(const std::string& text)>;

  Progress(asio::io_context& io, Look look, Note note);

  void start();
  // Ends the messages.
  void stop();

 private:
  void await(std::chrono::steady_clock::duration since_start);

  asio::steady_timer timer_;
  const Look look_;
  const Note note_;
  std::chrono::steady_clock::time_point started_;
  bool stopped_ = false;
};

// Returns the text for the user: "6 of 8 hosts are up after 2.0 s; waiting for", a line for each of the first
// missing hosts, and a line that counts the others.
std::string progress_report(const Progress::State& state, std::chrono::steady_clock::duration elapsed);

}  // namespace tutti::tools
