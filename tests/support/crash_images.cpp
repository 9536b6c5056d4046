#include "support/crash_images.h"

#include <set>

namespace berth::test {

namespace {

class Choices {
 public:
  explicit Choices(std::size_t pages) : pages_(pages) {}

  void add(CrashChoice choice) {
    if (seen_.insert(choice).second) all_.push_back(std::move(choice));
  }
  template <class IsKept>
  void add_subset(IsKept is_kept, std::size_t torn_sectors = 0) {
    CrashChoice choice{std::vector<bool>(pages_), torn_sectors};
    for (std::size_t page = 0; page < pages_; ++page) choice.is_kept[page] = is_kept(page);
    add(std::move(choice));
  }
  [[nodiscard]] std::vector<CrashChoice> take() { return std::move(all_); }

 private:
  std::size_t pages_;
  std::set<CrashChoice> seen_;
  std::vector<CrashChoice> all_;
};

}  // namespace

std::vector<CrashChoice> crash_choices(std::size_t pages, const CrashChoices& how, Rng& rng) {
  Choices choices(pages);
  if (pages <= how.all_subsets_up_to) {
    for (std::uint64_t mask = 0; mask < std::uint64_t{1} << pages; ++mask)
      choices.add_subset([&](std::size_t page) { return (mask >> page & 1U) != 0; });
  } else {
    for (std::size_t kept = 0; kept <= pages; ++kept)  // prefixes; none and all among them
      choices.add_subset([&](std::size_t page) { return page < kept; });
    for (std::size_t lost = 0; lost < pages; ++lost)
      choices.add_subset([&](std::size_t page) { return page != lost; });
    for (std::size_t i = 0; i < how.random_subsets; ++i)
      choices.add_subset([&](std::size_t) { return rng.below(2) == 0; });
  }
  for (std::size_t sectors = 1; how.torn && pages > 0 && sectors < 8; ++sectors)
    choices.add_subset([&](std::size_t page) { return page + 1 < pages; }, sectors);
  return choices.take();
}

}  // namespace berth::test
