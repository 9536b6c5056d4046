#include "policies/bsbf/partners.h"

#include <algorithm>
#include <tuple>

namespace berth {

BucketId PartnerIndex::bucket_of(const PartnerClass& klass) {
  const auto [entry, is_new] =
      ids_.try_emplace(klass, BucketId{static_cast<std::uint32_t>(buckets_.size())});
  if (is_new) {
    buckets_.push_back({.klass = klass, .alone = ByFinish{&memory_}, .sharing = {}});
    of_pool_[klass.pool.value].push_back(entry->second);
  }
  return entry->second;
}

void PartnerIndex::add_alone(JobId job, const PartnerClass& klass, Time finish) {
  const BucketId id = bucket_of(klass);
  buckets_[id.value].alone.emplace(finish, job);
  where_[job] = {.kept = true, .bucket = id, .finish = finish};
}

void PartnerIndex::add_sharing(JobId job, const PartnerClass& klass, Time now) {
  const BucketId id = bucket_of(klass);
  auto& sharing = buckets_[id.value].sharing;
  sharing.insert(std::ranges::lower_bound(sharing, job, {}, &Sharing::job),
                 {.job = job, .filed = now});
  where_[job] = {.kept = true, .bucket = id, .finish = kNever};
}

void PartnerIndex::remove(JobId job) {
  Where& where = where_[job];
  Bucket& bucket = buckets_[where.bucket.value];
  if (where.finish == kNever) {
    bucket.sharing.erase(std::ranges::lower_bound(bucket.sharing, job, {}, &Sharing::job));
  } else {
    bucket.alone.erase({where.finish, job});
  }
  where.kept = false;
}

PairSetting PartnerSearch::setting(const BesideClass& terms, double left) const noexcept {
  return {.sharing = average_if_sharing(left, newcomer_.length * terms.stretch, terms.slowdown),
          .waiting = average_if_waiting(left, newcomer_.length),
          .sub_steps = terms.sub_steps};
}

/// By the rank; then equal sizes, which free their devices together; then the earlier job.
bool PartnerSearch::comes_before(const Stream& a, const Stream& b) const noexcept {
  const auto key = [&](const Stream& stream) {
    const PairSetting& setting = stream.best.setting;
    const double rank =
        newcomer_.rank == PartnerRank::AverageTime ? setting.sharing : -setting.benefit();
    return std::tuple(rank, stream.bucket->klass.gpus != newcomer_.gpus, stream.best.job);
  };
  return key(a) < key(b);
}

bool PartnerSearch::look(Stream& stream) const {
  if (!stream.is_bucket || stream.at == stream.end) return false;
  const auto& [finish, job] = *stream.at;
  const double left = to_seconds(finish - now_);
  stream.best = {.job = job, .setting = setting(stream.terms, left)};
  return left > 0 && is_better(stream.best.setting.sharing, stream.best.setting.waiting);
}

void PartnerSearch::add_bucket(const PartnerIndex::Bucket& bucket, const BesideClass& terms) {
  if (bucket.alone.empty()) return;
  Stream stream{.bucket = &bucket,
                .terms = terms,
                .at = bucket.alone.begin(),
                .end = bucket.alone.end(),
                .is_bucket = true,
                .best = {}};
  if (newcomer_.rank == PartnerRank::Benefit) {  // the longest ones gain most
    stream.at = bucket.alone.lower_bound({bucket.alone.rbegin()->first, JobId{}});
    if (look(stream)) streams_.push_back(stream);
    return;
  }
  const double least =
      least_partner_left(newcomer_.length * terms.stretch, newcomer_.length, terms.slowdown);
  // A little before the threshold, so that rounding cannot skip the first that is worth it.
  const double from = std::max(0.0, least * (1 - 1e-6) - 1e-5);
  if (from > kMaxInputSeconds) return;
  stream.at = bucket.alone.lower_bound({now_ + seconds_to_duration(from), JobId{}});
  while (stream.at != stream.end && !look(stream)) {
    if (to_seconds(stream.at->first - now_) > least * (1 + 1e-6) + 1e-5) return;
    ++stream.at;
  }
  if (stream.at != stream.end) streams_.push_back(stream);
}

void PartnerSearch::add_one(const PartnerIndex::Bucket& bucket, const BesideClass& terms, JobId job,
                            double left) {
  if (!(left > 0)) return;
  const PairSetting pair = setting(terms, left);
  if (!is_better(pair.sharing, pair.waiting)) return;
  streams_.push_back({.bucket = &bucket,
                      .terms = terms,
                      .at = {},
                      .end = {},
                      .is_bucket = false,
                      .best = {.job = job, .setting = pair}});
}

/// By benefit from the longest to the shortest, but those of one length by their ids.
bool PartnerSearch::advance(Stream& stream) const {
  if (!stream.is_bucket) return false;
  const Time finish = stream.at->first;
  ++stream.at;
  if (newcomer_.rank == PartnerRank::Benefit &&
      (stream.at == stream.end || stream.at->first != finish)) {
    const auto& alone = stream.bucket->alone;
    const auto group = alone.lower_bound({finish, JobId{}});
    if (group == alone.begin()) return false;
    stream.at = alone.lower_bound({std::prev(group)->first, JobId{}});
  }
  return look(stream);
}

std::optional<Partner> PartnerSearch::next() {
  if (streams_.empty()) return std::nullopt;
  const auto first = std::ranges::min_element(
      streams_, [&](const Stream& a, const Stream& b) { return comes_before(a, b); });
  const Partner best = first->best;
  if (!advance(*first)) {
    *first = streams_.back();
    streams_.pop_back();
  }
  return best;
}

}  // namespace berth
