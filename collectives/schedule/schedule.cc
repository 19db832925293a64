#include "collectives/schedule/schedule.h"

#include <string_view>

namespace tutti {
namespace {

std::string text(const Slice& slice) {
  constexpr std::string_view names[] = {"input", "output", "scratch", "window"};
  std::string out;
  if (slice.owner == everyone) out = "everyone.";
  if (slice.owner >= 0) out = std::to_string(slice.owner) + ".";
  out += names[static_cast<std::size_t>(slice.buffer)];
  out += '[';
  out += std::to_string(slice.offset);
  out += ',';
  out += std::to_string(slice.offset + slice.count);
  out += ')';
  return out;
}

std::string message(const Step& step, std::string_view verb, std::string_view direction) {
  std::string out(verb);
  out += ' ';
  out += direction;
  out += ' ';
  out += std::to_string(step.peer);
  out += " #";
  out += std::to_string(step.index);
  out += ' ';
  return out;
}

std::string text(const Step& step) {
  switch (step.kind) {
    case StepKind::send:
      return message(step, "send", "to") + text(step.left);
    case StepKind::recv:
      return message(step, "recv", "from") + text(step.out);
    case StepKind::recv_reduce: {
      const std::string operands = step.message_side == MessageSide::right ? text(step.left) + " op message"
                                                                           : "message op " + text(step.left);
      return message(step, "recv_reduce", "from") + text(step.out) + " <- " + operands;
    }
    case StepKind::copy:
      return "copy " + text(step.out) + " <- " + text(step.left);
    case StepKind::reduce:
      return "reduce " + text(step.out) + " <- " + text(step.left) + " op " + text(step.right);
    case StepKind::scale:
      return "scale " + text(step.out) + " <- " + text(step.left) + " * factor";
    case StepKind::divide:
      return "divide " + text(step.out) + " <- " + text(step.left) + " / size";
    case StepKind::signal:
      return "signal #" + std::to_string(step.index);
    case StepKind::await:
      return "await " + std::to_string(step.peer) + " #" + std::to_string(step.index);
  }
  return {};
}

}  // namespace

std::string Schedule::to_string() const {
  std::vector<std::string> after(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    for (const std::uint32_t successor : successors_of(steps[i])) {
      std::string& list = after[successor];
      list += list.empty() ? ", after " : ",";
      list += std::to_string(i);
    }
  }
  std::string out;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    out += std::to_string(i);
    out += ' ';
    out += text(steps[i]);
    out += after[i];
    out += '\n';
  }
  if (repeat.times != 0) {
    out += "steps " + std::to_string(repeat.first) + " to " + std::to_string(repeat.last - 1) + ": " +
           std::to_string(repeat.times) + " times, each " + std::to_string(repeat.stride) +
           " elements further on\n";
  }
  return out;
}

}  // namespace tutti
