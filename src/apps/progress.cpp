#include "apps/progress.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include <fmt/format.h>

#include "apps/terminal.h"

namespace berth {

ProgressBar::ProgressBar(std::size_t runs, std::size_t jobs, bool enabled)
    : jobs_(std::max<std::size_t>(jobs, 1)),
      enabled_(enabled && stderr_is_terminal()),
      colour_(wants_colour()),
      began_(Clock::now()),
      over_(runs),
      events_(runs),
      drawn_(began_) {}

ProgressFn ProgressBar::of_run(std::size_t run) {
  if (!enabled_) return {};
  return [this, run](const Progress& progress) {
    const std::lock_guard lock(mutex_);
    over_[run] = progress.over;
    events_[run] = progress.events;
    draw();
  };
}

void ProgressBar::finished(std::size_t run) {
  if (!enabled_) return;
  const std::lock_guard lock(mutex_);
  over_[run] = jobs_;
  ++finished_;
  draw();
}

void ProgressBar::draw() {
  const auto now = Clock::now();
  if (now - drawn_ < std::chrono::milliseconds(100)) return;
  drawn_ = now;
  visible_ = true;
  const std::string text =
      "\r" + line(std::chrono::duration<double>(now - began_).count()) + "\x1b[K";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

std::string ProgressBar::line(double elapsed) const {
  const std::size_t over = std::accumulate(over_.begin(), over_.end(), std::size_t{0});
  const std::uint64_t events = std::accumulate(events_.begin(), events_.end(), std::uint64_t{0});
  const double done = static_cast<double>(over) / static_cast<double>(jobs_ * over_.size());
  constexpr std::size_t kWidth = 24;
  const std::size_t filled =
      std::min(kWidth, static_cast<std::size_t>(done * static_cast<double>(kWidth)));
  std::string bar;
  for (std::size_t i = 0; i < kWidth; ++i) bar += i < filled ? "█" : "·";
  if (colour_) bar = fmt::format("\x1b[36m{}\x1b[0m", bar);
  std::string text = fmt::format("{} {:3.0f} %  {:.2f} M events/s", bar, done * 100,
                                 static_cast<double>(events) / elapsed / 1e6);
  if (over_.size() > 1) text += fmt::format("  {} of {} runs", finished_, over_.size());
  if (done > 0.01) text += fmt::format("  {} left", human_duration(elapsed * (1 - done) / done));
  return text;
}

void ProgressBar::erase() {
  if (!enabled_) return;
  const std::lock_guard lock(mutex_);
  if (visible_) std::fputs("\r\x1b[K", stderr);
  visible_ = false;
}

}  // namespace berth
