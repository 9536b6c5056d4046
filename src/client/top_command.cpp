// berth top: the keys.
#include <algorithm>

#include <fmt/format.h>
#include <unistd.h>

#include "client/commands.h"
#include "client/endpoint.h"
#include "client/screen.h"
#include "client/top_feed.h"
#include "client/top_view.h"

namespace berth::client {

namespace {

using namespace std::chrono_literals;

class Top {
 public:
  Top(Screen& screen, TopFeed& feed, bool has_colour)
      : screen_(screen), feed_(feed), has_colour_(has_colour) {}

  void run() {
    while (!is_over_) {
      snapshot_ = feed_.latest();
      choice_.message = feed_.message();
      screen_.draw(top_lines(snapshot_, choice_, {screen_.width(), screen_.height(), has_colour_}));
      const Input input = screen_.wait(1s);
      if (input.kind == Input::Kind::Ended) return;
      if (input.kind == Input::Kind::Key) press(input);
    }
  }

 private:
  void press(const Input& input) {
    // A question takes the next key, whatever it is: only y does anything.
    if (!choice_.question.empty()) return answer(input);
    if (choice_.is_typing) return type(input);
    switch (input.key) {
      case Key::Up: return move(-1);
      case Key::Down: return move(1);
      case Key::PageUp: return move(-10);
      case Key::PageDown: return move(10);
      case Key::Escape: choice_.filter.clear(); return;
      case Key::Character: return letter(input.character);
      default: return;
    }
  }

  void letter(char c) {
    switch (c) {
      case 'q':
      case '\x03': is_over_ = true; return;
      case 'k': return move(-1);
      case 'j': return move(1);
      case 's':
        choice_.sort = static_cast<TopSort>((static_cast<int>(choice_.sort) + 1) % kTopSorts);
        return;
      case '/': choice_.is_typing = true; return;
      case 'c': return ask(Verb::Cancel);
      case 'h': return ask(Verb::Hold);
      case 'r': return ask(Verb::Release);
      default: return;
    }
  }

  void ask(Verb verb) {
    if (choice_.selected == 0) return;
    verb_ = verb;
    asked_ = choice_.selected;  // what is asked about stays, whatever the list does meanwhile
    choice_.question = fmt::format("{} job {}? (y/n)", to_string(verb), asked_);
  }

  void answer(const Input& input) {
    choice_.question.clear();
    if (input.key == Key::Character && (input.character == 'y' || input.character == 'Y'))
      feed_.act({.verb = verb_, .ids = {asked_}});
  }

  void type(const Input& input) {
    if (input.key == Key::Enter) choice_.is_typing = false;
    if (input.key == Key::Escape) {
      choice_.is_typing = false;
      choice_.filter.clear();
    }
    if (input.key == Key::Backspace && !choice_.filter.empty()) choice_.filter.pop_back();
    if (input.key == Key::Character && static_cast<unsigned char>(input.character) >= 32)
      choice_.filter += input.character;
  }

  // By number of the selected job: the list may have changed since it was drawn.
  void move(int by) {
    const auto jobs = top_jobs(snapshot_, choice_);
    if (jobs.empty()) return;
    const auto chosen =
        std::ranges::find(jobs, choice_.selected, [](const JobRow* job) { return job->number; });
    const auto last = static_cast<std::ptrdiff_t>(jobs.size()) - 1;
    const auto place = chosen == jobs.end()
                           ? (by > 0 ? 0 : last)
                           : std::clamp<std::ptrdiff_t>(chosen - jobs.begin() + by, 0, last);
    choice_.selected = jobs[static_cast<std::size_t>(place)]->number;
  }

  Screen& screen_;
  TopFeed& feed_;
  bool has_colour_;
  TopSnapshot snapshot_;
  TopChoice choice_;
  Verb verb_{};
  JobNumber asked_ = 0;
  bool is_over_ = false;
};

}  // namespace

// Without a terminal on both sides it prints one picture and ends, as for a pipe.
int run_top(const Call& call) {
  const std::string user = call.has("me") ? std::string(kMe) : call.value("user");
  auto endpoint = find_endpoint(call.value("server"), process_variables());
  if (!endpoint) return call.console.complain(kMisuse, endpoint.error());
  // The first answer comes before the screen is taken: a wrong address is told plainly.
  Scheduler scheduler(*endpoint);
  const TopSnapshot first = ask_for_snapshot(scheduler, user);
  if (!first.trouble.empty()) return call.console.complain(kFailure, first.trouble);
  if (call.has("once") || !call.console.is_terminal() || ::isatty(STDIN_FILENO) == 0) {
    call.console.put(top_once(first, call.console.has_colour()));
    return call.console.done();
  }
  const auto screen = Screen::open();
  if (!screen) return call.console.complain(kFailure, screen.error());
  TopFeed feed(*endpoint, user, [&] { (*screen)->wake(); });
  Top(**screen, feed, call.console.has_colour()).run();
  return call.console.done();
}

}  // namespace berth::client
