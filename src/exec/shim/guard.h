// A process above the shim that does nothing while the shim lives. A job of the scheduler's own
// user can kill its shim; what it has started then belongs to the guard, whatever session, group or
// environment it has given itself, and the guard ends it before it goes. Only one that kills both
// can leave something behind.
#pragma once

namespace berth {

/// Makes the process that becomes the shim and comes back in it. The caller stays as its guard,
/// under a name of its own; `name` is the program's argv[0]. False: there is none.
[[nodiscard]] bool begin_guarded(char* name);

}  // namespace berth
