#include "collectives/group/inquiry.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace tutti {

namespace {

constexpr std::chrono::milliseconds answer_limit{100};
constexpr std::size_t most_named = 16;

}  // namespace

Inquiry::Inquiry(ExpiredNote about, int size)
    : about_(std::move(about)),
      until_(Deadline::after(answer_limit)),
      answered_(static_cast<std::size_t>(size)),
      open_(answered_.size()) {}

void Inquiry::take_answer(int rank, const HereNote& answer) {
  const auto at = static_cast<std::size_t>(rank);
  if (answer.sequence != about_.sequence || answered_[at]) return;
  answered_[at] = true;
  --open_;
  if (answer.next <= answer.sequence) late_.push_back(rank);
}

void Inquiry::take_report(int rank, const ExpiredNote& expired) {
  take_answer(rank, {expired.context, expired.sequence, expired.sequence + 1});
}

std::vector<int> Inquiry::silent() const {
  std::vector<int> silent;
  for (std::size_t i = 0; i < answered_.size(); ++i) {
    if (!answered_[i]) silent.push_back(static_cast<int>(i));
  }
  return silent;
}

int Inquiry::culprit() const {
  std::vector<int> named = silent();
  named.insert(named.end(), late_.begin(), late_.end());
  return named.size() == 1 ? named.front() : -1;
}

Status Inquiry::verdict(const std::function<std::string(int rank)>& describe) const {
  std::string text = about_.text;
  const auto name = [&](const std::vector<int>& ranks, const char* what) {
    for (std::size_t i = 0; i < std::min(ranks.size(), most_named); ++i)
      text += (i == 0 ? "; " + std::string(what) + ": " : ", ") + describe(ranks[i]);
    if (ranks.size() > most_named) text += " and " + std::to_string(ranks.size() - most_named) + " more";
  };
  name(late_, "late");
  name(silent(), "not answering");
  return Status(Code::timeout, text);
}

}  // namespace tutti
