// How `berth why` tells what the scheduler found: first one sentence with numbers, then every
// reason, then what would help, then the place in the order.
#include <algorithm>

#include <fmt/format.h>

#include "base/text_table.h"
#include "client/tables.h"

namespace berth::client {

namespace {

/// Whoever looks at a stranger's job cannot change it; its user can.
std::string owner_of(const Why& why) {
  return why.is_yours ? "you" : why.user.empty() ? "its user" : clipped(why.user, 80);
}

std::string remark(const Why& why, const WhyReason& reason) {
  std::vector<std::string> parts;
  if (reason.when == "never") parts.emplace_back("no state of this cluster can satisfy it");
  if (reason.who == "user") parts.push_back(owner_of(why) + " can change it");
  if (reason.who == "operator" || reason.who == "admin")
    parts.push_back(fmt::format("an {} can change it", reason.who));
  if (reason.sole) parts.emplace_back("alone it keeps the job waiting");
  return parts.empty() ? std::string{} : fmt::format(" [{}]", fmt::join(parts, "; "));
}

/// As it came: whole, to thousandths, or a word.
std::string plain(const WhyNumber& number) {
  return std::visit([](const auto& value) { return fmt::format("{}", value); }, number);
}

/// `at` is a moment for programs; the sentence has it in words.
std::string numbers_of(const WhyReason& reason) {
  std::string text;
  for (const auto& [key, value] : reason.numbers) {
    if (key == "at") continue;
    std::string name = harmless(key);
    std::ranges::replace(name, '_', ' ');
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, clipped(plain(value), 80));
  }
  return text;
}

std::string entities_of(const WhyReason& reason) {
  std::string text;
  for (const std::string& entity : reason.entities)
    text += fmt::format("{}{}", text.empty() ? "it is about: " : "; ", clipped(entity, 80));
  return text;
}

std::string fix_of(const WhyReason& reason) {
  return reason.fix.empty() ? std::string{} : "to open it: " + clipped(reason.fix, 2'000);
}

/// Where another scheduler decides: what Berth would do in its place, and "berth: …" why.
const std::string kAdvice = "berth";

std::string advice_line(const WhyReason& reason) {
  std::string text = fmt::format("Berth: {}\n", clipped(reason.text, 2'000));
  if (!reason.fix.empty()) text += fmt::format("       {}\n", clipped(reason.fix, 2'000));
  return text;
}

std::string reasons_text(const Why& why, const std::vector<const WhyReason*>& reasons) {
  std::string text;
  std::size_t width = 0;
  const auto kind_of = [](const WhyReason& reason) {
    const std::string kind = harmless(reason.kind);
    return kind.starts_with(kAdvice + ": ") ? kind.substr(kAdvice.size() + 2) : kind;
  };
  for (const WhyReason* reason : reasons) width = std::max(width, display_width(kind_of(*reason)));
  for (const WhyReason* reason : reasons) {
    text += fmt::format("  {:<{}}  {}{}\n", kind_of(*reason), width, clipped(reason->text, 2'000),
                        remark(why, *reason));
    for (const std::string& line : {numbers_of(*reason), entities_of(*reason), fix_of(*reason)})
      if (!line.empty()) text += fmt::format("  {:<{}}  {}\n", "", width, line);
  }
  return text;
}

}  // namespace

std::string why_text(const Why& why) {
  constexpr std::string_view kOver = "is over";
  const std::string summary = clipped(why.summary, 2'000);
  std::string text =
      summary.starts_with(kOver)
          ? fmt::format("job {} is over ({}){}\n", why.job, to_string(why.state),
                        std::string_view(summary).substr(kOver.size()))
          : fmt::format("job {} is {}: {}\n", why.job, to_string(why.state), summary);
  std::vector<const WhyReason*> order;
  for (const WhyReason& reason : why.reasons) order.push_back(&reason);
  // What no state of the cluster can satisfy comes first: nothing else helps before that.
  std::ranges::stable_partition(order, [](const WhyReason* one) { return one->when == "never"; });
  const auto advice = std::ranges::stable_partition(
      order, [](const WhyReason* one) { return !one->kind.starts_with(kAdvice); });
  for (const WhyReason* reason : advice)
    if (reason->kind == kAdvice) text += advice_line(*reason);
  if (advice.begin() != order.begin()) text += "\nWhat holds it back\n";
  text += reasons_text(why, {order.begin(), advice.begin()});
  std::erase_if(order, [](const WhyReason* one) { return !one->kind.starts_with(kAdvice + ":"); });
  if (!order.empty()) text += "\nWhat would hold it back under Berth\n";
  text += reasons_text(why, order);
  if (!why.would_start.empty())
    text += why.is_yours ? "\nWhat would let it start\n"
                         : fmt::format("\nWhat would let it start (for {} to do)\n", owner_of(why));
  for (const std::string& change : why.would_start)
    text += fmt::format("  {}\n", clipped(change, 2'000));
  if (why.place > 0)
    text += fmt::format("\nPlace {} of {} in the order of those that wait.\n", why.place, why.of);
  if (why.age_seconds >= 1) text += fmt::format("As of {} s ago.\n", why.age_seconds);
  return text;
}

}  // namespace berth::client
