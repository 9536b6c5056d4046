#include "training/online_model.h"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <utility>

namespace berth {

namespace {

constexpr std::int32_t kDesignPoints = 4;
constexpr std::int32_t kMostExtensions = 2;
constexpr std::int32_t kMostProbes = 12;  // whatever happens beside it
constexpr double kWorthMore = 1.25;       // so many more cores within reach are tried
constexpr double kWideGap = 2;            // cores: narrower, the sweet point is known well enough
constexpr double kNearby = 0.1;           // a point so close to one that is wanted will do
constexpr double kTolerance = 0.15;       // measured against believed speed
constexpr double kFullSpeed = 0.97;       // of the plateau
constexpr double kLongestProbe = 120;     // seconds; then that number of cores is given up
constexpr std::size_t kMostModels = 10'000;

/// The fewest cores with the full speed: what a core adds beyond that is within the noise of
/// measuring, and somebody else may use it.
CpuCurve without_noise(CpuCurve curve) {
  while (curve.theta > 1 && curve.feed(curve.theta - 1) >= kFullSpeed * curve.plateau)
    --curve.theta;
  return curve;
}

bool is_measured(const std::map<double, double>& points, std::int32_t cores) {
  return std::ranges::any_of(
      points, [&](const auto& point) { return std::abs(point.first - cores) <= kNearby * cores; });
}

}  // namespace

void OnlineModel::begin(JobNumber number, const std::string& model, std::int32_t gpus, double now) {
  Job& job = jobs_[number];
  job.model = model;
  job.gpus = std::max(1, gpus);
  job.shape.reset();
  job.steady.restart();
  job.asked.reset();
  const auto memory = memory_.find(model);
  if (model.empty() || memory == memory_.end()) return;
  if (now - memory->second.at >= std::chrono::duration<double>(kCurveIsFresh).count()) return;
  for (const auto& [shape, points] : memory->second.points) {
    Known& known = job.known[shape];
    if (known.points.empty()) known.points = points;
  }
}

void OnlineModel::set_cores(JobNumber number, double cores) {
  Job& job = jobs_[number];
  if (job.cores == cores) return;
  job.cores = cores;
  job.steady.restart();
}

void OnlineModel::forget(JobNumber job) {
  jobs_.erase(job);
  changed_.erase(job);
}

void OnlineModel::has_changed(JobNumber job) {
  changed_.insert(job);
  ++revision_;
}

OnlineModel::Known* OnlineModel::known_of(JobNumber number) {
  const auto job = jobs_.find(number);
  if (job == jobs_.end() || !job->second.shape) return nullptr;
  return &job->second.known[*job->second.shape];
}

void OnlineModel::add(JobNumber number, const IterationSample& sample, double now) {
  Job& job = jobs_[number];
  const RunShape shape{.gpus = job.gpus,
                       .batch = std::max<std::int64_t>(1, std::llround(sample.batch)),
                       .sub_steps = sample.sub_steps};
  if (job.shape != shape) {
    job.shape = shape;
    job.steady.restart();
    has_changed(number);
  }
  job.steady.add(sample.seconds, sample.iterations);
  const auto seconds = job.steady.seconds();
  if (!seconds || *seconds <= 0 || job.cores <= 0) return;
  take_point(number, job, job.known[shape], static_cast<double>(shape.batch) / *seconds, now);
}

void OnlineModel::take_point(JobNumber number, Job& job, Known& known, double speed, double now) {
  const bool was_asked = job.asked && *job.asked == job.cores;
  const auto [point, is_new] = known.points.try_emplace(job.cores, speed);
  const bool again = known.neighbour && *known.neighbour == job.cores;
  if (!is_new && !again) {
    const bool agrees = std::abs(speed / point->second - 1) <= kTolerance;
    known.contradictions = agrees ? 0 : known.contradictions + 1;
    if (known.contradictions < SteadySpeed::kWindow) return;
    deny_curve(job, known, speed);
  }
  if (again) {
    point->second = speed;
    known.neighbour.reset();
  }
  if (is_new) ++known.probes;
  if (was_asked) job.asked.reset();
  known.contradictions = 0;
  has_changed(number);
  remember(job, now);
}

/// Most likely its work per sample changed: the curve keeps its form, and a neighbour tells whether
/// that is right.
void OnlineModel::deny_curve(Job& job, Known& known, double speed) const {
  const double ratio = speed / known.points.at(job.cores);
  for (auto& [cores, known_speed] : known.points) known_speed *= ratio;
  const auto here = static_cast<std::int32_t>(std::lround(job.cores));
  if (known.reach >= 2) known.neighbour = here < known.reach ? here + 1 : here - 1;
}

void OnlineModel::remember(const Job& job, double now) {
  if (job.model.empty()) return;
  if (memory_.size() >= kMostModels && !memory_.contains(job.model)) {
    memory_.erase(
        std::ranges::min_element(memory_, {}, [](const auto& entry) { return entry.second.at; }));
  }
  Memory& memory = memory_[job.model];
  memory.points[*job.shape] = job.known.at(*job.shape).points;
  memory.at = now;
  remembered_.insert(job.model);
}

void OnlineModel::take_remembered(std::vector<std::pair<std::string, CorePoints>>& models) {
  for (const std::string& model : std::exchange(remembered_, {})) {
    const auto found = memory_.find(model);
    if (found != memory_.end()) models.emplace_back(model, found->second.points);
  }
}

void OnlineModel::recall(const std::string& model, CorePoints points, double now) {
  if (memory_.size() >= kMostModels || memory_.contains(model)) return;
  memory_[model] = {.points = std::move(points), .at = now};
}

std::vector<JobNumber> OnlineModel::take_changed() {
  const std::set<JobNumber> changed = std::exchange(changed_, {});
  return {changed.begin(), changed.end()};
}

/// Points of this shape, and those of other shapes at which cores were the limit: they would have
/// fed this one just as fast.
std::optional<CpuFit> OnlineModel::fit(const Job& job, const Known& known) const {
  std::vector<CpuPoint> points;
  double fastest = 0;
  for (const auto& [cores, speed] : known.points) {
    points.push_back({cores, speed});
    fastest = std::max(fastest, speed);
  }
  if (points.empty()) return std::nullopt;
  for (const auto& [shape, other] : job.known) {
    if (&other == &known || other.points.size() < 2) continue;
    std::vector<CpuPoint> theirs;
    for (const auto& [cores, speed] : other.points) theirs.push_back({cores, speed});
    const auto their_fit = fit_cpu_curve(theirs, {.weights = FitWeights::Relative});
    if (!their_fit) continue;
    for (const CpuPoint& point : theirs) {
      const bool limited = point.cores < their_fit->curve.theta && point.speed < fastest;
      if (limited && !known.points.contains(point.cores)) points.push_back(point);
    }
  }
  auto fitted = fit_cpu_curve(points, {.weights = FitWeights::Relative});
  if (!fitted) return std::nullopt;
  return *std::move(fitted);
}

/// The design is that of the cores within reach at first: neighbours that are profiled, too, change
/// what is within reach all the time. Where far more come within reach later, all of them are one
/// more point.
std::optional<std::int32_t> OnlineModel::next_probe(const Job& job, Known& known) {
  const auto is_open = [&](std::int32_t cores) {
    return cores >= 1 && cores <= known.reach && !known.given_up.contains(cores);
  };
  if (known.neighbour && is_open(*known.neighbour)) return known.neighbour;
  if (known.most < 2 || known.probes >= kMostProbes) return std::nullopt;
  const std::int32_t first = std::clamp(known.first_most, 2, 4096);
  const auto design = designs_.design(std::min(kDesignPoints, first), first);
  if (!design) return std::nullopt;
  std::vector<std::int32_t> wanted{design->begin(), design->end()};
  wanted.push_back(known.most);
  for (const std::int32_t point : std::views::reverse(wanted)) {
    const std::int32_t cores = std::min(point, known.reach);
    if (is_open(cores) && !is_measured(known.points, cores)) return cores;
  }
  const auto fitted = fit(job, known);
  if (!fitted || fitted->gap.high - fitted->gap.low <= kWideGap) return std::nullopt;
  const std::int32_t theta = fitted->curve.theta;
  if (!is_open(theta) || known.points.contains(theta)) return std::nullopt;
  const bool may_extend = known.extensions.contains(theta) ||
                          static_cast<std::int32_t>(known.extensions.size()) < kMostExtensions;
  if (!may_extend) return std::nullopt;
  known.extensions.insert(theta);
  return theta;
}

std::optional<std::int32_t> OnlineModel::probe(JobNumber number, std::int32_t most, double now) {
  Known* known = known_of(number);
  if (known == nullptr) return std::nullopt;
  Job& job = jobs_.at(number);
  known->reach = most;
  if (most >= kWorthMore * known->most) {  // somebody left, or needs fewer than it had
    if (known->most < 2) known->first_most = most;
    known->most = most;
  }
  if (job.asked && now - job.asked_at > kLongestProbe) {
    known->given_up.insert(*job.asked);
    job.asked.reset();
  }
  const auto next = next_probe(job, *known);
  if (next != job.asked) {
    job.asked = next;
    job.asked_at = now;
  }
  return next;
}

std::optional<CpuCurve> OnlineModel::curve(JobNumber number) {
  Known* known = known_of(number);
  if (known == nullptr) return std::nullopt;
  const Job& job = jobs_.at(number);
  if (job.asked || next_probe(job, *known)) return std::nullopt;
  const auto fitted = fit(job, *known);
  if (!fitted) return std::nullopt;
  return without_noise(fitted->curve);
}

std::optional<double> OnlineModel::seconds_per_iteration(JobNumber number, double cores) {
  const auto known = curve(number);
  if (!known) return std::nullopt;
  const double speed = known->speed(cores);
  if (speed <= 0) return std::nullopt;
  return static_cast<double>(jobs_.at(number).shape->batch) / speed;
}

}  // namespace berth
