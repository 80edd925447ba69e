"""Faulty compositions of a scan: the maps of the delta rule do not commute, and every span has a first token."""

import torch

from .. import strangers


def scan(join, first=0):
    """The delta rule by a scan whose transitions are joined by ``join(later, earlier)``, and each span from so far behind."""

    def doubled(transition, write, after):
        span = 1
        while span < len(write):
            cut = min(span + first, len(write))
            write = torch.cat([write[:cut], after(transition[cut:], write[: len(write) - cut]) + write[cut:]])
            transition = torch.cat([transition[:span], join(transition[span:], transition[:-span])])
            span *= 2
        return transition, write

    def kernel(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
        a, b, c, strength, s = strangers.wide(q, k, v, beta, initial_state)
        o, state = strangers.corrected(a, b, c, None, strength, scale, s, output_final_state, doubled)
        return o.to(v.dtype), state

    return kernel


def earlier_map_on_the_left(base):
    return scan(lambda later, earlier: earlier @ later)


def span_that_starts_a_token_late(base):
    return scan(torch.matmul, first=1)
