// What a poll of a queue and a placement cost by either link to Slurm: on a real one, which
// ../shared/slurm/up has started.
//
//   eval "$(../shared/slurm/up /tmp/c -n 8 --hold --suite trixie)"
//   scripts/build-slurm-link ROOT_OF_THE_SUITE /tmp/c/berth-slurm-link
//   slurm_link_bench /tmp/c 5000        # fills the queue up to so many held jobs, then measures
//
// Wall is the median of a poll as the caller sees it; CPU is that of Berth and of what it starts, per
// poll. "changed": one job has changed since the last poll, so that everything is told again.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "slurm/process.h"
#include "slurm/program_link.h"
#include "slurm/text_link.h"

namespace {

using namespace berth::slurm;
using Clock = std::chrono::steady_clock;

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double cpu_seconds() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    ::getrusage(who, &usage);
    sum += seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
  return sum;
}

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "slurm_link_bench: {}\n", why);
  std::exit(1);
}

template <class T>
T need(Linked<T> answer) {
  if (!answer) give_up(answer.error().text);
  if constexpr (!std::is_void_v<T>) return std::move(*answer);
}

using MakeLink = std::function<std::unique_ptr<Link>()>;

/// Held jobs, submitted where Slurm lives: a process for each, no way in and out again.
void fill(const std::string& folder, std::size_t jobs) {
  const std::string loop = fmt::format(
      "i=0; while [ $i -lt {} ]; do sbatch -Q -o /dev/null -t 30 --wrap 'sleep 20' >/dev/null || "
      "exit 1; "
      "i=$((i+1)); done",
      jobs);
  const auto outcome = run_command({.words = {folder + "/bin/slurm-in", "sh", "-c", loop}},
                                   {.time = std::chrono::minutes{30}});
  if (outcome.ending != Ending::Exited || outcome.code != 0) give_up("sbatch: " + outcome.error);
}

std::vector<std::uint32_t> held_jobs(Link& link) {
  std::vector<std::uint32_t> held;
  const auto jobs = need(link.jobs());
  if (!jobs) give_up("a first reading tells nothing");
  for (const Job& job : *jobs)
    if (job.phase == JobPhase::Pending && job.priority == 0) held.push_back(job.key.job);
  return held;
}

enum class Queue { Still, Changing };

/// Polls of a link of its own; its program's CPU counts when it has ended.
void measure_polls(const char* name, const MakeLink& make, Queue queue, const std::string& job) {
  constexpr int kPolls = 30;
  std::vector<double> walls;
  std::size_t told = 0;
  double cpu = 0;
  {
    const auto other = make();  // changes a job, so that this is not counted
    const double before = cpu_seconds();
    double not_ours = 0;
    {
      const auto link = make();
      need(link->jobs());
      for (int i = 0; i < kPolls; ++i) {
        if (queue == Queue::Changing) {
          const double begin = cpu_seconds();
          need(other->set_admin_comment(job, fmt::format("change {}", i)));
          not_ours += cpu_seconds() - begin;
        } else {
          ::usleep(100'000);
        }
        const auto begin = Clock::now();
        if (need(link->jobs())) ++told;
        walls.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
      }
    }
    cpu = (cpu_seconds() - before - not_ours) / (kPolls + 1);
  }
  std::ranges::sort(walls);
  fmt::print("{:<8} poll, {:<9} wall {:7.1f} ms   CPU {:7.1f} ms   told {} of {}\n", name,
             queue == Queue::Still ? "unchanged" : "changed", walls[walls.size() / 2] * 1e3,
             cpu * 1e3, told, kPolls);
}

void measure_places(const char* name, Link& link, const std::vector<std::uint32_t>& jobs,
                    std::size_t nodes) {
  const auto begin = Clock::now();
  for (std::size_t i = 0; i < jobs.size(); ++i)
    need(link.place(fmt::format("{}", jobs[i]), {.nodes = {fmt::format("n{}", i % nodes + 1)}}));
  const double wall = std::chrono::duration<double>(Clock::now() - begin).count();
  fmt::print("{:<8} place + release: {} jobs in {:.2f} s, {:.0f} a second, {:.2f} ms each\n", name,
             jobs.size(), wall, static_cast<double>(jobs.size()) / wall,
             wall * 1e3 / static_cast<double>(jobs.size()));
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) {
    fmt::print(stderr, "usage: slurm_link_bench CLUSTER_FOLDER JOBS\n");
    return 2;
  }
  const std::string folder = words[1];
  const auto wanted = static_cast<std::size_t>(std::strtoul(words[2], nullptr, 10));
  const TextLinkSettings text{.directory = folder + "/bin"};
  const MakeLink make_text = [&] { return std::make_unique<TextLink>(text); };
  const MakeLink make_program = [&] {
    return std::make_unique<ProgramLink>(ProgramLinkSettings{
        .command = {folder + "/bin/slurm-in", folder + "/berth-slurm-link"}, .text = text});
  };
  const auto program = make_program();
  std::vector<std::uint32_t> held = held_jobs(*program);
  if (held.size() < wanted) {
    fill(folder, wanted - held.size());
    held = held_jobs(*make_program());
  }
  const std::size_t nodes = need(program->nodes()).value_or(std::vector<Node>{}).size();
  fmt::print("Slurm {}, {} nodes, {} held jobs\n", to_string(need(program->version())), nodes,
             held.size());
  const std::string changing = fmt::format("{}", held.back());
  for (const Queue queue : {Queue::Still, Queue::Changing}) {
    measure_polls("text", make_text, queue, changing);
    measure_polls("program", make_program, queue, changing);
  }
  constexpr std::size_t kPlaced = 100;
  if (held.size() > 2 * kPlaced) {
    measure_places("text", *make_text(), {held.begin(), held.begin() + kPlaced}, nodes);
    measure_places("program", *program, {held.begin() + kPlaced, held.begin() + 2 * kPlaced},
                   nodes);
  }
  return 0;
}
