"""Scans: a loop over time with a recurrent cell as one kernel for all its rounds.

    for t in range(x.size(0)):                              a kernel that has the loop inside:
        gates = rows[t] + h @ w                        →    products by panels of w, then what is
        h = tanh(gates) * sigmoid(peep * h)                 pointwise, for some rows of the batch
        out.append(h)                                       through all rounds

Any cell will do whose round consists of products of rows by matrices that stay the same, and of
pointwise operators on parts of their columns. The rows of a batch do not need each other, so each
task takes some of them through all rounds.

| file | what it does |
|---|---|
| `rounds.py` | recognises such loops; takes one round out as a graph of its own |
| `scan.py` | the call: finds or makes a form for its arguments; says so where there is none |
| `course.py` | what eager autograd would know of the results, after any number of rounds |
| `node.py` | the node in the autograd graph |
| `tracing.py` | notes what operators of a round compute, products and parts included |
| `traced_round.py` | one round for given arguments: what is carried, and the gradients |
| `assembly.py` | from that to a form: what is kept of all rounds |
| `form.py` | what runs: memory for all rounds, two kernels, products for the weights' gradients |
| `layout.py` | how an array lies to rounds and rows |
| `text.py` | the kernels' text |
"""
