// What the hub makes of the lines that training code says.
#include <utility>

#include <fmt/format.h>

#include "training/hub.h"

namespace berth {

namespace {

/// Takes as long for a wrong token as for the right one.
bool is_same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size() || a.empty()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

}  // namespace

bool TrainingHub::complain(Peer& peer, std::string_view why) {
  const bool heard = peer.send(error_line(why)) == Peer::State::Open;
  return heard && ++peer.wrong_lines < options_.peer.wrong_lines;
}

/// Told when the lock is gone.
void TrainingHub::note_nonsense(Job& job, JobNumber number, std::string why) {
  if (!std::exchange(job.said_nonsense, true)) nonsense_.emplace_back(number, std::move(why));
}

bool TrainingHub::handle_line(Peer& peer, const std::string& line, double now) {
  const auto message = parse_from_code(line);
  if (!message) {
    if (peer.job != 0) {
      const std::lock_guard lock{mutex_};
      note_nonsense(jobs_[peer.job], peer.job, message.error().text());
    }
    return complain(peer, message.error().text());
  }
  if (const auto* hello = std::get_if<Hello>(&*message)) return handle_hello(peer, *hello, now);
  if (peer.job == 0) return complain(peer, "say hello first");
  if (std::holds_alternative<Bye>(*message)) return false;
  if (const auto* report = std::get_if<Report>(&*message)) {
    handle_report(peer, *report, now);
  } else if (const auto* resized = std::get_if<Resized>(&*message)) {
    handle_resized(peer, *resized);
  } else if (const auto* note = std::get_if<PhaseNote>(&*message)) {
    const std::lock_guard lock{mutex_};
    Job& job = jobs_[peer.job];
    if (job.has_speaker && peer.rank != job.speaker) return true;  // one of a gang speaks for all
    job.phase = note->phase;
    job.tells_phases = true;
    news_.insert(peer.job);
  } else if (const auto* saved = std::get_if<Checkpointed>(&*message)) {
    const std::lock_guard lock{mutex_};
    Job& job = jobs_[peer.job];
    job.history.add(*saved, now);
    news_.insert(peer.job);
  }
  return true;
}

bool TrainingHub::handle_hello(Peer& peer, const Hello& hello, double now) {
  if (peer.job != 0) return complain(peer, "hello was said already");
  if (hello.version != kTrainingProtocol) {
    static_cast<void>(peer.send(error_line(
        fmt::format("version {} is not spoken here, only {}", hello.version, kTrainingProtocol))));
    return false;
  }
  const auto expected = calls_.expected(hello.job);
  // One answer for all: who may not know learns nothing about other people's jobs.
  const bool may_speak = expected && (peer.uid == expected->uid || peer.uid == 0) &&
                         is_same_secret(hello.token, expected->token);
  if (!may_speak) {
    static_cast<void>(peer.send(error_line("no such job runs for you, or the token is wrong")));
    return false;
  }
  peer.job = hello.job;
  strangers_.erase(peer.id);
  peer.rank = hello.rank;
  peer.resizes = hello.resizes;
  peer.token = hello.token;
  std::string answer = welcome_line(hello.job);
  const std::lock_guard lock{mutex_};
  Job& job = jobs_[hello.job];
  if (job.token != expected->token) {
    job.token = expected->token;
    job.has_speaker = false;
    job.asked.reset();
    job.listeners = job.resizers = 0;
    if (job.phase_told) job.phase = Phase::Training;
    job.history.begin_attempt();
    job.meter.begin_attempt();
    job.said_nonsense = false;
    job.whole = expected->iterations;
    model_.begin(hello.job, expected->model, expected->gpus, now);
  } else if (job.has_speaker && hello.rank == job.speaker) {
    job.history.reconnect();
    job.meter.reconnect();
  }
  ++job.listeners;
  if (hello.resizes) ++job.resizers;
  if (job.terms) answer += terms_line(*job.terms);
  // What it was told may have been lost, with a connection or with the scheduler before this one:
  // it hears what is on record, and makes that true.
  if (hello.resizes && !expected->devices.empty()) {
    const ResizeAsk held{
        .devices = expected->devices, .cores = expected->cores, .deadline_seconds = 60};
    answer += resize_line(job.asked.value_or(held));
  }
  return peer.send(answer) == Peer::State::Open;
}

void TrainingHub::handle_resized(const Peer& peer, const Resized& resized) {
  {
    const std::lock_guard lock{mutex_};
    Job& job = jobs_[peer.job];
    if (!job.asked || job.asked->id != resized.id) return;  // a repetition, or too late
    job.asked.reset();
  }
  if (calls_.resized) calls_.resized(peer.job, resized);
}

/// The lowest rank that reports counts; the others see the same iterations.
void TrainingHub::handle_report(Peer& peer, const Report& report, double now) {
  const std::lock_guard lock{mutex_};
  Job& job = jobs_[peer.job];
  if (!job.has_speaker || peer.rank < job.speaker) {
    if (job.has_speaker) {
      job.history.begin_attempt();
      job.meter.reconnect();
    }
    job.has_speaker = true;
    job.speaker = peer.rank;
  }
  if (peer.rank != job.speaker) return;
  if (!job.meter.is_believed()) return;
  if (auto why = job.meter.add(report, now)) {
    note_nonsense(job, peer.job, "not believed any more: " + *why);
    news_.insert(peer.job);
    return;
  }
  const auto sample = job.history.add(report, now);
  if (sample) model_.add(peer.job, *sample, now);
  news_.insert(peer.job);
}

}  // namespace berth
