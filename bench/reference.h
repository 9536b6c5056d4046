// A fixed piece of work that is none of our code: how fast this machine is just now. It does what
// the simulator does all day (ordered heaps, lookups in tables larger than the caches, sorting) and
// must never change, or every baseline is void.
#pragma once

namespace berth::bench {

/// Processor seconds of the reference work, about a tenth of one.
[[nodiscard]] double reference_seconds();

/// Processor time of this process, not wall time: other work on the machine does not count.
[[nodiscard]] double processor_seconds();

}  // namespace berth::bench
