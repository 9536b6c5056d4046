// HiveD: tenants own cells, not numbers of GPUs (Zhao et al., OSDI 2020).
//
// A tenant's guaranteed jobs go in order of arrival to cells of its own: a part of one that is
// bound already, else its smallest unbound cell that is large enough is bound to a physical one. As
// the assignment is safe from the start, that never fails: the tenant waits as long as it would in
// a private cluster, whatever others do. Everybody else (tenants without cells, jobs larger than
// any cell of their tenant) is a guest on free cells, taken from the other end, and is preempted
// when a cell is bound where it runs.
//
// Tenant: the job's group, else its user. A gang larger than a node takes several whole nodes. A
// gang that is not the size of a cell takes the next larger one. Nodes out of service take their
// cells with them; the guarantee waits until they are back. Devices are chosen here, not by
// --placement.
//
// Whom it takes over from another policy stays on its devices as a guest, wherever they are in
// cells, until it ends or a cell is bound there.
//
// A decision costs a look at each tenant and, for each job that starts, at each request shape that
// waits, however many jobs do.
#pragma once

#include "policies/policy_entry.h"

namespace berth {

[[nodiscard]] PolicyEntry hived_entry();

}  // namespace berth
