#include "tools/run/line_output.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>

#include <sys/time.h>

namespace tutti::tools {
namespace {

constexpr std::size_t longest_partial = 64 * 1024;
constexpr std::uint64_t stdio_buffer = 4096;
constexpr auto silence = std::chrono::milliseconds(100);

// Returns "2025-01-31T12:00:00.123456 ", in local time.
std::string time_stamp() {
  timeval now;
  gettimeofday(&now, nullptr);
  tm local;
  localtime_r(&now.tv_sec, &local);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &local);
  char text[64];
  std::snprintf(text, sizeof text, "%s.%06ld ", date, static_cast<long>(now.tv_usec));
  return text;
}

}  // namespace

LineOutput::LineOutput(asio::io_context& io, Terminal& terminal, bool timestamp)
    : terminal_(terminal), timestamp_(timestamp), timer_(io) {}

void LineOutput::write(LineSource& source, std::string_view bytes) {
  source.total += bytes.size();
  source.aged = false;
  const std::size_t newline = bytes.rfind('\n');
  const std::size_t complete = newline == std::string_view::npos ? 0 : newline + 1;
  if (complete > 0 && source.partial.empty()) {
    show(source, bytes.substr(0, complete));
  } else if (complete > 0) {
    source.partial.append(bytes.substr(0, complete));
    show(source, source.partial);
    source.partial.clear();
  }
  source.partial.append(bytes.substr(complete));
  if (source.partial.size() >= longest_partial) {
    finish(source);
  } else if (!source.partial.empty()) {
    watch(source);
  }
}

void LineOutput::finish(LineSource& source) {
  if (!source.partial.empty()) show(source, source.partial);
  source.partial.clear();
}

void LineOutput::note(std::string_view lines) {
  leave_open_line(nullptr);
  terminal_.write(lines);
}

void LineOutput::leave_open_line(const LineSource* next) {
  if (open_ != nullptr && open_ != next && !open_returned_) terminal_.write("\n");
  if (open_ != next) open_ = nullptr;
}

std::string LineOutput::prefix(const LineSource& source) const {
  return (timestamp_ ? time_stamp() : std::string()) + source.tag;
}

void LineOutput::show(LineSource& source, std::string_view text) {
  leave_open_line(&source);
  const std::string before = prefix(source);
  if (before.empty()) {
    terminal_.write(text);
  } else {
    std::string tagged;
    bool at_start = open_ != &source;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
      if (at_start) tagged += before;
      tagged += text.substr(begin, end - begin);
      at_start = true;
      begin = end;
    }
    terminal_.write(tagged);
  }
  open_ = text.back() == '\n' ? nullptr : &source;
  open_returned_ = text.back() == '\r';
}

void LineOutput::watch(LineSource& source) {
  if (source.watched) return;
  source.watched = true;
  watched_.push_back(&source);
  if (watched_.size() > 1) return;
  timer_.expires_after(silence);
  timer_.async_wait([this](const asio::error_code& error) {
    if (!error) look();
  });
}

void LineOutput::look() {
  std::vector<LineSource*> looked_at;
  looked_at.swap(watched_);
  for (LineSource* source : looked_at) {
    source->watched = false;
    if (source->partial.empty()) continue;
    if (!source->aged) {
      watch(*source);
      source->aged = true;
    } else if (source->total % stdio_buffer != 0) {
      finish(*source);
    }
  }
}

}  // namespace tutti::tools
