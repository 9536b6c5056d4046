#include "daemon/training_gateway.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/check.h"
#include "base/file.h"
#include "daemon/launch.h"
#include "daemon/learnt.h"
#include "daemon/tokens.h"
#include "exec/account.h"
#include "perf/cpu_allocation.h"

namespace berth {

namespace {

constexpr std::size_t kShortestKey = 32;

/// Only we may read it, from its first byte on. A key that a crash cut short is made anew.
Result<std::string> key_from(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    BERTH_TRY(std::string kept, read_file(path));
    if (kept.size() >= kShortestKey) return kept;
  }
  std::string key = new_token_text();
  const std::string beside = path + ".new";
  ::unlink(beside.c_str());
  const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return fail(fmt::format("{}: cannot make: {}", beside, std::strerror(errno)));
  const bool is_whole =
      ::write(fd, key.data(), key.size()) == static_cast<ssize_t>(key.size()) && ::fsync(fd) == 0;
  ::close(fd);
  if (!is_whole || ::rename(beside.c_str(), path.c_str()) != 0)
    return fail(fmt::format("{}: cannot write: {}", path, std::strerror(errno)));
  return key;
}

TrainingView view_of(const TrainingFigures& figures) {
  return {.iterations = figures.iterations,
          .iterations_per_second = figures.iterations_per_second,
          .samples_per_second = figures.samples_per_second,
          .loss = figures.loss,
          .sub_steps = figures.sub_steps,
          .last_heard_seconds_ago = figures.last_heard_seconds_ago};
}

}  // namespace

Result<std::unique_ptr<TrainingGateway>> TrainingGateway::open(const std::string& socket,
                                                               const std::string& key_file,
                                                               Parts parts) {
  BERTH_TRY(std::string key, key_from(key_file));
  std::unique_ptr<TrainingGateway> gateway{
      new TrainingGateway(socket, std::move(key), std::move(parts))};
  TrainingGateway& self = *gateway;
  BERTH_TRY(self.hub_,
            TrainingHub::open(
                {.path = socket},
                {.expected = [&self](JobNumber job) { return self.expected(job); },
                 .changed = [&self](JobNumber job,
                                    const TrainingFigures& figures) { self.show(job, figures); },
                 .resized = self.parts_.resized,
                 .learned = self.parts_.wake,
                 .progressed = self.parts_.wake_for_rates,
                 .nonsense = [&self](JobNumber job,
                                     std::string_view why) { self.log_nonsense(job, why); }}));
  return gateway;
}

std::string TrainingGateway::token(JobNumber job, AttemptId attempt) const {
  const std::string text = fmt::format("training {} {}", job, to_text(attempt));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  BERTH_CHECK(HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
                   reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(),
                   &length) != nullptr,
              "HMAC is there");
  std::string hexadecimal;
  for (unsigned i = 0; i < length; ++i) hexadecimal += fmt::format("{:02x}", digest[i]);
  return hexadecimal;
}

std::vector<std::pair<std::string, std::string>> TrainingGateway::environment(
    JobNumber job, AttemptId attempt) const {
  return {{"BERTH_TRAINING_SOCKET", socket_}, {"BERTH_TRAINING_TOKEN", token(job, attempt)}};
}

std::optional<ExpectedAttempt> TrainingGateway::expected(JobNumber number) const {
  const auto job = parts_.board.find(number);
  if (!job || !job->attempt) return std::nullopt;
  const auto account = find_account(job->spec->user);
  if (!account) return std::nullopt;
  HeldDevices held = on_this_machine(job->attempt->where, parts_.cluster);
  return ExpectedAttempt{.token = token(number, job->attempt->id),
                         .uid = account->uid,
                         .model = kind_of(*job->spec),
                         .gpus = job->attempt->gpus,
                         .devices = std::move(held.devices),
                         .cores = std::move(held.cores),
                         .iterations = static_cast<double>(job->spec->iterations)};
}

void TrainingGateway::log_nonsense(JobNumber job, std::string_view why) const {
  if (parts_.log != nullptr)
    BERTH_LOG(*parts_.log, Warn, "training", "a job reports what makes no sense", {"job", job},
              {"why", why});
}

void TrainingGateway::show(JobNumber job, const TrainingFigures& figures) {
  const std::int64_t heard =
      parts_.clock.wall() - static_cast<std::int64_t>(figures.last_heard_seconds_ago * 1e6);
  parts_.board.note(job, [&](JobNote& note) {
    note.training = view_of(figures);
    note.training_heard = heard;
  });
}

// --- for the tuner

void SpeedsBySlot::take_changed(std::vector<JobId>& jobs) {
  if (hub_ == nullptr) return;
  const auto changed = log_->answer(
      [&] {
        std::vector<JobId> known;
        for (const JobNumber job : hub_->take_changed()) {
          if (const auto slot = executor_->slot_of(job)) known.push_back(*slot);
        }
        return known;
      },
      [](ByteWriter& out, const std::vector<JobId>& known) {
        out.natural(known.size());
        for (const JobId job : known) out.natural(job.value);
      },
      [](ByteReader& in) {
        std::vector<JobId> known(static_cast<std::size_t>(in.natural()));
        for (JobId& job : known) job.value = static_cast<std::uint32_t>(in.natural());
        return known;
      });
  jobs.insert(jobs.end(), changed.begin(), changed.end());
}

bool SpeedsBySlot::speeds(JobId job, std::int32_t most, std::vector<double>& f) {
  if (hub_ == nullptr) return false;
  auto speeds = log_->answer(
      [&] {
        const auto curve = hub_->curve(executor_->number_of(job));
        return curve ? normalised_speeds(*curve, most) : std::vector<double>{};
      },
      [](ByteWriter& out, const std::vector<double>& known) {
        out.natural(known.size());
        for (const double speed : known) out.real(speed);
      },
      [](ByteReader& in) {
        std::vector<double> known(static_cast<std::size_t>(in.natural()));
        for (double& speed : known) speed = in.real();
        return known;
      });
  if (speeds.empty()) return false;
  f = std::move(speeds);
  return true;
}

std::optional<std::int32_t> SpeedsBySlot::probe(JobId job, std::int32_t most) {
  if (hub_ == nullptr) return std::nullopt;
  return log_->answer([&] { return hub_->probe(executor_->number_of(job), most); },
                      [](ByteWriter& out, const std::optional<std::int32_t>& cores) {
                        out.integer(cores.value_or(-1));
                      },
                      [](ByteReader& in) {
                        const auto cores = static_cast<std::int32_t>(in.integer());
                        return cores < 0 ? std::nullopt : std::optional{cores};
                      });
}

}  // namespace berth
