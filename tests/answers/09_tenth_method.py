"""Answers of students to the checks of 09_tenth_method. The format is in test_exercises.py.

A class that changes some methods only has the others from the solution.
"""


# %% wrong pieces: add it to what was there
def accumulate(A, B, Z, C):
    Z = Z.astype(np.float64)
    return Z.T @ Z, Z.T @ C


# %% wrong pieces: accumulate changed the arrays it was given
def accumulate(A, B, Z, C):
    Z = Z.astype(np.float64)
    A += Z.T @ Z
    B += Z.T @ C
    return A, B


# %% wrong pieces: the product was made in float32: convert Z to float64 first
def accumulate(A, B, Z, C):
    return A + Z.T @ Z, B + Z.T @ C


# %% wrong pieces: A is float32, but float64 is needed
def accumulate(A, B, Z, C):
    return (A + Z.T @ Z).astype(np.float32), (B + Z.T @ C).astype(np.float32)


# %% wrong pieces: products of Zᵀ with Z and with C
def accumulate(A, B, Z, C):
    Z = Z.astype(float)
    return A + Z.T @ Z, (B.T + C.T @ Z)


# %% wrong pieces: two arrays are needed
def accumulate(A, B, Z, C):
    Z = Z.astype(float)
    A = A + Z.T @ Z
    B = B + Z.T @ C


# %% wrong pieces: is not the old sum plus that of the new samples
def accumulate(A, B, Z, C):
    Z = Z.astype(float)
    n = len(Z)
    return A + Z.T @ Z / n, B + Z.T @ C / n


# %% wrong pieces: add ridge to the diagonal of A and to nothing else
def solve(A, B, ridge):
    return np.linalg.solve(A, B)


# %% wrong pieces: add ridge to the diagonal of A and to nothing else
def solve(A, B, ridge):
    return np.linalg.solve(A + ridge, B)


# %% wrong pieces: add ridge to the diagonal of A and to nothing else
def solve(A, B, ridge):
    return np.linalg.solve(A + np.eye(len(A)), B)


# %% wrong pieces: solve for B, not for its transpose
def solve(A, B, ridge):
    return (np.linalg.inv(A + ridge * np.eye(len(A))) @ B).T


# %% wrong pieces: all of A is needed, not only its diagonal
def solve(A, B, ridge):
    return B / (np.diag(A) + ridge)[:, None]


# %% right pieces: outer products, one sample at a time, and an inverse
def accumulate(A, B, Z, C):
    A = A.copy()
    B = B.copy()
    for z, c in zip(Z.astype(float), C):
        A += np.outer(z, z)
        B += np.outer(z, c)
    return A, B


def solve(A, B, ridge):
    return np.linalg.inv(A + ridge * np.identity(A.shape[0])) @ B


# %% right pieces: einsum, and the Cholesky factor
def accumulate(A, B, Z, C):
    wide = np.array(Z, dtype="f8")
    return [A + np.einsum("ni,nj", wide, wide), B + np.einsum("ni,nk->ik", wide, C)]


def solve(A, B, ridge):
    M = np.array(A)
    M[np.diag_indices(len(M))] += ridge
    L = np.linalg.cholesky(M)
    return np.linalg.solve(L.T, np.linalg.solve(L, B))


# %% right pieces: eigenvalues, one column of B after the other
def solve(A, B, ridge):
    values, vectors = np.linalg.eigh(A)
    columns = [vectors @ ((vectors.T @ b) / (values + ridge)) for b in B.T]
    return np.stack(columns, axis=1)


# %% wrong class: _learn must add to the sums, not start again
class RidgeHash(RidgeHash):
    def _learn(self, Z, y):
        targets, index = self._targets(y)
        zero = 0 * self._A, 0 * self._B
        self._A, self._B = accumulate(*zero, Z, targets[index])


# %% wrong class: with ridge=1000 .* pass self.ridge to solve
class RidgeHash(RidgeHash):
    def _decide(self, Z):
        return (Z @ solve(self._A, self._B, 1.0)).astype(np.float32)


# %% wrong class: _decide returns float64, but float32 is needed
class RidgeHash(RidgeHash):
    def _decide(self, Z):
        return Z @ solve(self._A, self._B, self.ridge)


# %% wrong class: _decide returns int8, but float32 is needed
class RidgeHash(RidgeHash):
    def _decide(self, Z):
        W = solve(self._A, self._B, self.ridge)
        return np.where(Z @ W > 0, 1, -1).astype(np.int8)


# %% wrong class: _A and _B are float32
class RidgeHash(RidgeHash):
    def _start(self, Z):
        CodebookHasher._start(self, Z)
        m = Z.shape[1]
        self._A = np.zeros((m, m), np.float32)
        self._B = np.zeros((m, self.n_bits), np.float32)

    def _learn(self, Z, y):
        targets, index = self._targets(y)
        C = targets[index].astype(np.float32)
        self._A = self._A + Z.T @ Z
        self._B = self._B + Z.T @ C


# %% wrong class: is B made of each sample's own target
class RidgeHash(RidgeHash):
    def _learn(self, Z, y):
        targets, index = self._targets(y)
        self._A, self._B = accumulate(self._A, self._B, Z, targets[np.sort(index)])


# %% wrong class: _learn wrote into the old _A
class RidgeHash(RidgeHash):
    def _learn(self, Z, y):
        targets, index = self._targets(y)
        Z = Z.astype(float)
        self._A += Z.T @ Z
        self._B += Z.T @ targets[index]


# %% wrong class: only _A and _B are saved
class RidgeHash(RidgeHash):
    def _learn(self, Z, y):
        targets, index = self._targets(y)
        self._A, self._B = accumulate(self._A, self._B, Z, targets[index])
        self._W = solve(self._A, self._B, self.ridge)

    def _decide(self, Z):
        return (Z @ self._W).astype(np.float32)


# %% wrong class: is B made of each sample's own target
class RidgeHash(RidgeHash):
    def _learn(self, Z, y):
        # Targets of its own, which nobody else knows.
        targets = np.where(np.random.default_rng(0).random((10, 16)) < 0.5, 1, -1)
        self._targets(y)
        self._A, self._B = accumulate(self._A, self._B, Z, targets[y])


# %% wrong class: the ridge is added twice
class RidgeHash(RidgeHash):
    def _start(self, Z):
        CodebookHasher._start(self, Z)
        m = Z.shape[1]
        self._A = self.ridge * np.eye(m)
        self._B = np.zeros((m, self.n_bits))


# %% wrong class: values of shape \(16, 5\)
class RidgeHash(RidgeHash):
    def _decide(self, Z):
        W = solve(self._A, self._B, self.ridge)
        return (W.T @ Z.T).astype(np.float32)


# %% right class: the ridge is part of the sums from the start
class RidgeHash(RidgeHash):
    def _start(self, Z):
        CodebookHasher._start(self, Z)
        m = Z.shape[1]
        self._A = self.ridge * np.eye(m)
        self._B = np.zeros((m, self.n_bits))

    def _decide(self, Z):
        return np.float32(Z @ np.linalg.solve(self._A, self._B))


# %% right class: one sample after the other, with accumulate of its own
class RidgeHash(RidgeHash):
    def _learn(self, Z, y):
        targets, index = self._targets(y)
        A = self._A.copy()
        B = self._B.copy()
        for z, row in zip(Z.astype(np.float64), index):
            A += np.outer(z, z)
            B += np.outer(z, targets[row])
        self._A = A
        self._B = B


# %% right class: the sum of each class, then one product with the targets
class RidgeHash(RidgeHash):
    def _learn(self, Z, y):
        targets, index = self._targets(y)
        Z = Z.astype(float)
        sums = np.stack([Z[index == k].sum(axis=0) for k in range(len(targets))])
        self._A = self._A + Z.T @ Z
        self._B = self._B + sums.T @ targets


# %% right class: W is learned, and saved too
class RidgeHash(RidgeHash):
    _saved = (*RidgeHash._saved, "_W")

    def _forms(self, m, labels):
        return super()._forms(m, labels) | {"_W": Form("float64", (m, self.n_bits))}

    def _learn(self, Z, y):
        targets, index = self._targets(y)
        self._A, self._B = accumulate(self._A, self._B, Z, targets[index])
        self._W = solve(self._A, self._B, self.ridge)

    def _decide(self, Z):
        return (Z @ self._W).astype(np.float32)


# %% right class: also after wrong pieces
def accumulate(A, B, Z, C):
    return Z.T @ Z, Z.T @ C


def solve(A, B, ridge):
    return np.linalg.solve(A, B)


# %% wrong entry: pass both on
def make_ridge(dataset_name, n_bits, random_state=None):
    return RidgeHash(n_bits, RBF(300, divisor=6), random_state=0)


METHODS["RidgeHash"] = make_ridge


# %% wrong entry: pass both on
def make_ridge(dataset_name, n_bits, random_state=None):
    return RidgeHash(feature_map=RBF(300, divisor=6), random_state=random_state)


METHODS["RidgeHash"] = make_ridge


# %% wrong entry: n_anchors of the feature map is None
def make_ridge(dataset_name, n_bits, random_state=None):
    return RidgeHash(n_bits, random_state=random_state)


METHODS["RidgeHash"] = make_ridge


# %% wrong entry: divisor of the feature map is 10
def make_ridge(dataset_name, n_bits, random_state=None):
    return RidgeHash(n_bits, RBF(300), random_state=random_state)


METHODS["RidgeHash"] = make_ridge


# %% wrong entry: center of the feature map is True
def make_ridge(dataset_name, n_bits, random_state=None):
    return RidgeHash(n_bits, RBF(300, divisor=6, center=True), random_state=random_state)


METHODS["RidgeHash"] = make_ridge


# %% wrong entry: make_ridge returns HMOH, but your own class is to be compared
def make_ridge(dataset_name, n_bits, random_state=None):
    return METHODS["HMOH"](dataset_name, n_bits, random_state)


METHODS["RidgeHash"] = make_ridge


# %% wrong entry: ridge is 0.001, but 1 is needed
def make_ridge(dataset_name, n_bits, random_state=None):
    return RidgeHash(n_bits, RBF(300, divisor=6), 0.001, random_state=random_state)


METHODS["RidgeHash"] = make_ridge


# %% wrong entry: the codebook is 'spread'
def make_ridge(dataset_name, n_bits, random_state=None):
    return RidgeHash(n_bits, RBF(300, divisor=6), codebook="spread", random_state=random_state)


METHODS["RidgeHash"] = make_ridge


# %% wrong entry: make a new one in each call
kept = RidgeHash(32, RBF(300, divisor=6))


def make_ridge(dataset_name, n_bits, random_state=None):
    return kept.set_params(n_bits=n_bits, random_state=random_state)


METHODS["RidgeHash"] = make_ridge


# %% wrong entry: the model has already learned
def make_ridge(dataset_name, n_bits, random_state=None):
    model = RidgeHash(n_bits, RBF(300, divisor=6), random_state=random_state)
    return model.fit(X, y)


METHODS["RidgeHash"] = make_ridge


# %% wrong entry: make_ridge returns NoneType
def make_ridge(dataset_name, n_bits, random_state=None):
    RidgeHash(n_bits, RBF(300, divisor=6), random_state=random_state)


METHODS["RidgeHash"] = make_ridge


# %% right entry: the map of HMOH itself
def make_ridge(dataset_name, n_bits, random_state=None):
    settings = METHODS["HMOH"](dataset_name, n_bits).get_params(deep=False)
    return RidgeHash(n_bits, settings["feature_map"], random_state=random_state)


METHODS["RidgeHash"] = make_ridge


# %% right entry: set_params, whole numbers as floats
def make_ridge(dataset_name, n_bits, random_state=None):
    model = RidgeHash(feature_map=RBF())
    model.set_params(feature_map__divisor=6.0, feature_map__n_anchors=300)
    return model.set_params(n_bits=n_bits, ridge=1, random_state=random_state)


METHODS["RidgeHash"] = make_ridge
